import { expect, test } from 'vitest';
import { createDrawingWatch } from '../../../src/engine/browser/drawing-watch.ts';

/** What the watch says of a process that is looked at every half second. */
function judge(count: number, look: (n: number) => { pid?: number; waits: number; cpu: number }) {
  const watch = createDrawingWatch();
  return Array.from({ length: count }, (_, n) => {
    const { pid = 7, waits, cpu } = look(n);
    return watch({ pid, drawing: { waits, cpuSeconds: cpu } }, n * 500);
  });
}

test.each([
  ['is idle', (n: number) => ({ waits: 3, cpu: n * 0.001 })],
  ['draws one frame after the other', (n: number) => ({ waits: n, cpu: n })],
  ['takes four seconds for each', (n: number) => ({ waits: Math.floor(n / 8), cpu: n * 0.5 })],
])('a process that %s works', (_, look) => {
  expect(new Set(judge(60, look))).toEqual(new Set(['works']));
});

test('one that has been at the same drawing for five seconds hangs', () => {
  const states = judge(11, (n) => ({ waits: 3, cpu: n * 0.5 }));
  expect(states).toEqual([...Array(10).fill('works'), 'hangs']);
});

test('one that gets a fifth of a core is given until it has worked for half of that time', () => {
  const states = judge(40, (n) => ({ waits: 3, cpu: n * 0.1 }));
  expect(states.indexOf('hangs')).toBe(25);
});

test('one that was idle before is given as long', () => {
  const states = judge(40, (n) => ({ waits: 3, cpu: Math.max(0, n - 15) * 0.5 }));
  expect(states.indexOf('hangs')).toBe(25);
});

test('another process in its place is told once', () => {
  const states = judge(4, (n) => ({ pid: n < 2 ? 7 : 8, waits: n, cpu: 0 }));
  expect(states).toEqual(['works', 'works', 'was replaced', 'works']);
});

test('one in whose place Chromium has started none is gone; none was seen while a browser starts', () => {
  const watch = createDrawingWatch();
  const seen = { pid: 7, drawing: { waits: 1, cpuSeconds: 0 } };
  const looks = [undefined, undefined, undefined, undefined, seen, undefined, undefined, undefined];
  expect(looks.map((look, n) => watch(look, n * 500)).slice(3)).toEqual([
    'works',
    'works',
    'works',
    'works',
    'is gone',
  ]);
});
