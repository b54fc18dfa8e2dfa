import { createNoise, type Noise } from './noise.ts';

/** The seed of a test, printed: `TEST_SEED`, else a new one. */
export function testSeed(test: string): number {
  const seed = Number(process.env.TEST_SEED ?? (Date.now() % 2 ** 31) + 1);
  process.stdout.write(`TEST_SEED=${seed} (${test})\n`);
  return seed;
}

/** Random numbers of a test that prints its seed. The same `TEST_SEED` gives the same again. */
export function seededNoise(test: string): Noise {
  return createNoise(testSeed(test));
}
