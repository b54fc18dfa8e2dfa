import { expect, test } from 'vitest';
import { createStartQueue } from '../../../src/threads/start-queue.ts';

/**
 * A queue whose clock moves with each start, and whose slices the test runs. What ends takes `endMs`
 * of an iteration of the event loop.
 */
function startQueue({ sliceMs = 1_000, startMs = 1, endMs = 0 } = {}) {
  const started: string[] = [];
  const slices: (() => void)[] = [];
  const rests: (() => void)[] = [];
  const ends = new Map<string, () => void>();
  let nowMs = 0;
  const queue = createStartQueue<string>({
    sliceMs,
    now: () => nowMs,
    defer: (run) => void slices.push(run),
    pause: (run) => void rests.push(run),
    start(item) {
      started.push(item);
      nowMs += startMs;
      return new Promise((resolve) => ends.set(item, resolve));
    },
  });

  /** Ends all that is in flight, in one iteration of the event loop. */
  async function endAll(): Promise<void> {
    for (const end of ends.values()) end();
    ends.clear();
    // What follows the ends.
    for (let n = 0; n < 5; n += 1) await Promise.resolve();
    nowMs += endMs;
    for (const slice of slices.splice(0)) slice();
  }

  /** Ends one alone. */
  async function endOf(item: string): Promise<void> {
    ends.get(item)?.();
    ends.delete(item);
    for (let n = 0; n < 5; n += 1) await Promise.resolve();
  }

  return {
    queue,
    started,
    slices,
    rests,
    endAll,
    endOf,
    inFlight: () => [...ends.keys()],
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

function add(
  queue: ReturnType<typeof startQueue>['queue'],
  account: string,
  from: number,
  count: number,
) {
  for (let n = from; n < from + count; n += 1) queue.add(n, account, `${account}-${n}`);
}

test('accounts take turns, whatever one of them has queued', () => {
  const { queue, started } = startQueue();
  add(queue, 'flood', 0, 3);
  add(queue, 'other', 10, 2);
  queue.run();
  expect(started).toEqual(['flood-0', 'other-10', 'flood-1', 'other-11', 'flood-2']);
});

test('a slice ends in time, and the event loop runs before the next', () => {
  const { queue, started, slices } = startQueue({ sliceMs: 2 });
  add(queue, 'flood', 0, 5);
  queue.run();
  expect(started).toHaveLength(2);
  add(queue, 'other', 10, 1);
  queue.run();
  expect(started).toHaveLength(2);
  slices.shift()?.();
  expect(started.slice(2)).toEqual(['flood-2', 'other-10']);
  slices.shift()?.();
  slices.shift()?.();
  expect(started).toHaveLength(6);
  expect(slices).toEqual([]);
});

test('what is removed does not start, and keeps nobody waiting', () => {
  const { queue, started, slices } = startQueue({ sliceMs: 1 });
  add(queue, 'flood', 0, 4);
  for (let n = 0; n < 4; n += 1) queue.remove(n);
  add(queue, 'other', 10, 1);
  queue.run();
  expect(started).toEqual(['other-10']);
  expect(slices).toEqual([]);
});

test('an account whose answers make the iterations of a shared thread long has fewer in flight', async () => {
  const { queue, inFlight, rests, endAll, pass } = startQueue({ startMs: 0, endMs: 30 });
  add(queue, 'flood', 0, 1_000);
  add(queue, 'other', 1_000, 1);
  queue.run();
  expect(inFlight()).toHaveLength(1_001);
  add(queue, 'flood', 2_000, 2_000);
  const counts: number[] = [];
  for (let n = 0; n < 9; n += 1) {
    await endAll();
    queue.run();
    rests.shift()?.();
    counts.push(inFlight().length);
  }
  expect(counts).toEqual([500, 250, 125, 62, 31, 15, 7, 4, 4]);
  // Others start at once, in parallel.
  add(queue, 'other', 5_000, 3);
  rests.shift()?.();
  expect(inFlight()).toHaveLength(7);
  // The answers of a slow site do not come together: the window opens.
  pass(100);
  rests.shift()?.();
  expect(inFlight()).toHaveLength(107);
});

test('an account that has a thread to itself is not bounded', async () => {
  const { queue, inFlight, endAll } = startQueue({ endMs: 30 });
  for (let round = 0; round < 5; round += 1) {
    add(queue, 'flood', round * 200, 200);
    queue.run();
    expect(inFlight()).toHaveLength(200);
    await endAll();
  }
});

test('a thread stays shared while a crawl of another account takes long', async () => {
  const { queue, endOf, pass } = startQueue();
  add(queue, 'other', 0, 1);
  add(queue, 'flood', 10, 3);
  queue.run();
  pass(5_000);
  expect(queue.isShared()).toBe(false);
  await endOf('flood-10');
  expect(queue.isShared()).toBe(true);
  await endOf('other-0');
  pass(5_000);
  await endOf('flood-11');
  expect(queue.isShared()).toBe(false);
});
