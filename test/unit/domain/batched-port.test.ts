import { setImmediate as nextIteration } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createBatchedPort } from '../../../src/domain/batched-port.ts';

function openPort() {
  const clock = { ms: 0 };
  const batches: (readonly number[])[] = [];
  const port = createBatchedPort<number>(
    { postMessage: (messages) => void batches.push(messages) },
    { now: () => clock.ms },
  );
  return { clock, batches, port };
}

test('what is posted in one iteration is sent together', async () => {
  const { batches, port } = openPort();
  for (const message of [1, 2, 3]) port.post(message);
  expect(batches).toEqual([]);
  await nextIteration();
  expect(batches).toEqual([[1, 2, 3]]);
  port.post(4);
  await nextIteration();
  expect(batches).toEqual([[1, 2, 3], [4]]);
});

test('in a long iteration messages do not wait for its end, and stay in order', async () => {
  const { clock, batches, port } = openPort();
  for (let n = 0; n < 10; n++) {
    port.post(n);
    clock.ms += 0.2;
  }
  expect(batches.length).toBeGreaterThan(2);
  await nextIteration();
  expect(batches.flat()).toEqual(Array.from({ length: 10 }, (_, n) => n));
});
