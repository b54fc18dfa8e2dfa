import { expect, test } from 'vitest';
import { createStartQueue } from '../../../src/threads/start-queue.ts';

/** A queue whose clock moves by 1 ms with each start, and whose slices the test runs. */
function startQueue(sliceMs: number) {
  const started: string[] = [];
  const slices: (() => void)[] = [];
  let nowMs = 0;
  const queue = createStartQueue<string>({
    sliceMs,
    now: () => nowMs,
    defer: (run) => void slices.push(run),
    start(item) {
      started.push(item);
      nowMs += 1;
    },
  });
  return { queue, started, slices };
}

test('accounts take turns, whatever one of them has queued', () => {
  const { queue, started } = startQueue(100);
  for (let n = 0; n < 3; n += 1) queue.add(n, 'flood', `flood-${n}`);
  queue.add(10, 'other', 'other-0');
  queue.add(11, 'other', 'other-1');
  queue.run();
  expect(started).toEqual(['flood-0', 'other-0', 'flood-1', 'other-1', 'flood-2']);
});

test('a slice ends in time, and the event loop runs before the next', () => {
  const { queue, started, slices } = startQueue(2);
  for (let n = 0; n < 5; n += 1) queue.add(n, 'flood', `flood-${n}`);
  queue.run();
  expect(started).toHaveLength(2);
  queue.add(10, 'other', 'other-0');
  queue.run();
  expect(started).toHaveLength(2);
  slices.shift()?.();
  expect(started.slice(2)).toEqual(['flood-2', 'other-0']);
  slices.shift()?.();
  slices.shift()?.();
  expect(started).toHaveLength(6);
  expect(slices).toEqual([]);
});

test('what is removed does not start, and keeps nobody waiting', () => {
  const { queue, started, slices } = startQueue(1);
  for (let n = 0; n < 4; n += 1) queue.add(n, 'flood', `flood-${n}`);
  for (let n = 0; n < 4; n += 1) queue.remove(n);
  queue.add(10, 'other', 'other-0');
  queue.run();
  expect(started).toEqual(['other-0']);
  expect(slices).toEqual([]);
});
