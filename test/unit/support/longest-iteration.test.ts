import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { measureIterations } from '../../support/longest-iteration.ts';

const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve));

test('collections count for no iteration, also when they are announced in the next', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const filled = Array.from({ length: 2_000_000 }, (_, n) => ({ n }));
  await nextIteration();
  // Registered before the measurement, so that it runs before it in the same iteration.
  const collected = new Promise<number>((resolve) => {
    setImmediate(() => {
      const before = process.threadCpuUsage();
      collect();
      const { user, system } = process.threadCpuUsage(before);
      resolve((user + system) / 1_000);
    });
  });
  using measured = measureIterations();
  const ms = await collected;
  for (let n = 0; n < 3; n++) await nextIteration();
  expect(measured.takeLongestMs()).toBeLessThan(ms / 2);
  expect(filled.length).toBe(2_000_000);
});
