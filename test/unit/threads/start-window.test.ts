import { expect, test } from 'vitest';
import { createStartWindow } from '../../../src/threads/start-window.ts';

/** A window that two accounts share, after `count` iterations of `iterationMs`, one every `everyMs`. */
function windowAfter(count: number, iterationMs: number, everyMs: number) {
  let nowMs = 0;
  const window = createStartWindow(() => nowMs);
  for (let n = 0; n < count; n += 1) {
    window.seen('flood');
    window.seen('other');
    nowMs += everyMs;
    window.passed(iterationMs, 200);
  }
  return window;
}

test('iterations of half a millisecond that follow one another keep the window small', () => {
  expect(windowAfter(100, 0.5, 1).isOpen(10)).toBe(false);
});

test('the same iterations now and then bound nothing: a slow site answers a few crawls at once', () => {
  expect(windowAfter(100, 0.5, 10).isOpen(200)).toBe(true);
});

test('one iteration of over a millisecond halves what was in flight', () => {
  const window = windowAfter(1, 1.1, 10);
  expect([window.isOpen(99), window.isOpen(100)]).toEqual([true, false]);
});

test('few crawls of an account are always in flight, and all of one that has the thread alone', () => {
  expect(windowAfter(100, 5, 1).isOpen(3)).toBe(true);
  const alone = createStartWindow(() => 0);
  alone.seen('only');
  alone.passed(5, 200);
  expect(alone.isOpen(200)).toBe(true);
});

test('a crawl of another account that takes long keeps the window small', () => {
  let nowMs = 0;
  const window = createStartWindow(() => nowMs);
  window.seen('other');
  window.seen('flood');
  for (let n = 0; n < 2_000; n += 1) {
    nowMs += 1;
    window.sawSeveral();
    window.passed(5, 200);
  }
  expect([window.isShared(), window.isOpen(10)]).toEqual([true, false]);
  nowMs += 1_000;
  expect([window.isShared(), window.isOpen(10)]).toEqual([false, true]);
});
