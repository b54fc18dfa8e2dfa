import { expect, test } from 'vitest';
import { createWakeWriter } from '../../../src/scheduler/agenda/wake-writer.ts';

function recordedWrites() {
  const writes: { key: string; at: Date; done: PromiseWithResolvers<void> }[] = [];
  const wake = createWakeWriter((_name, key, at) => {
    const done = Promise.withResolvers<void>();
    writes.push({ key, at, done });
    return done.promise;
  });
  return { writes, wake };
}

test('shares one write among the wakes that come while another is on its way, at the earliest time', async () => {
  const { writes, wake } = recordedWrites();
  const first = wake('crawl', 'a', new Date(50));
  const waiting = [30, 10, 20].map((ms) => wake('crawl', 'a', new Date(ms)));
  const other = wake('crawl', 'b', new Date(99));
  expect(writes.map(({ key, at }) => [key, at.getTime()])).toEqual([
    ['a', 50],
    ['b', 99],
  ]);
  writes[0]?.done.resolve();
  await first;
  expect(writes.slice(2).map(({ key, at }) => [key, at.getTime()])).toEqual([['a', 10]]);
  writes[2]?.done.resolve();
  writes[1]?.done.resolve();
  await Promise.all([...waiting, other]);
  // Nothing is on its way any more: the next one is written by itself.
  void wake('crawl', 'a', new Date(1));
  expect(writes).toHaveLength(4);
});

test('tells each waker of its own write: one that fails does not fail the next', async () => {
  const { writes, wake } = recordedWrites();
  const failing = wake('crawl', 'a', new Date(0));
  const next = wake('crawl', 'a', new Date(0));
  writes[0]?.done.reject(new Error('away'));
  await expect(failing).rejects.toThrow('away');
  writes[1]?.done.resolve();
  await expect(next).resolves.toBeUndefined();
});
