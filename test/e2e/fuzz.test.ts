import { expect, test } from 'vitest';
import { startApp } from '../support/app.ts';
import { FUZZED, runFuzz } from '../support/fuzz.ts';
import { byLength } from '../support/length.ts';

// More calls, and other ones: npm run fuzz.

const CALLS = byLength(3_000, 20_000);
const seed = Number(process.env.FUZZ_SEED ?? 1);

test('mutated calls over REST, Connect, gRPC and gRPC-Web are never the service’s fault', async () => {
  process.stdout.write(`${CALLS} mutated calls, FUZZ_SEED=${seed}\n`);
  await using app = await startApp({ env: FUZZED });
  const { answers, faults } = await runFuzz(app.url, CALLS, seed);
  expect(faults.slice(0, 5)).toEqual([]);
  expect(app.log.filter((line) => line.includes('"level":50'))).toEqual([]);
  // It is no fuzzing if nothing gets through.
  for (const answer of ['rest 200', 'connect 200', 'grpc code 0', 'grpc-web code 0']) {
    expect(answers.get(answer)).toBeGreaterThan(CALLS / 200);
  }
  expect((await app.rest('GET', '/readyz')).status).toBe(200);
});
