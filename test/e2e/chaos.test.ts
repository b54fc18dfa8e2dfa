import { describe, expect, test } from 'vitest';
import { type ChaosReport, runChaos } from '../support/chaos/run-chaos.ts';
import { byLength } from '../support/length.ts';
import { mongodProgram, startMongod } from '../support/mongod.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { testSeed } from '../support/seed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The run ends by itself: two minutes and a half at most for what is left, and for starts before it. */
const MOST_MS = byLength(360_000, 600_000);

function expectBalance({ violations, disturbances, rows, log }: ChaosReport): void {
  expect(violations, log).toEqual([]);
  const { kill, drain, stop, database } = disturbances;
  expect(kill + drain + stop + database).toBeGreaterThan(0);
  for (const { acknowledged } of rows) expect(acknowledged).toBeGreaterThan(0);
}

describe.concurrent('chaos: every rid has one end, counters add up, limits are kept', () => {
  test(
    'one process on the embedded database, killed, drained and stopped at random',
    async () => {
      await using folder = await temporaryFolder();
      const seed = testSeed('chaos, embedded');
      const env = { DATA_DIR: folder.path };
      const seconds = byLength(6, 60);
      expectBalance(await runChaos({ seconds, seed, processes: 1, env }));
    },
    MOST_MS,
  );

  test.skipIf(mongodbUri === '')(
    'several processes on MongoDB, killed, drained and stopped at random, with the database killed too',
    async () => {
      const program = mongodProgram();
      await using database = program === undefined ? undefined : await startMongod(program);
      await using given = testDatabase();
      const uri = database === undefined ? given.uri : `${database.uri}/chaos`;
      const seed = testSeed('chaos, MongoDB');
      const env = { MONGODB_URI: uri };
      const [seconds, processes] = byLength([12, 3], [120, 4]);
      expectBalance(await runChaos({ seconds, seed, processes, env, database }));
    },
    MOST_MS,
  );
});
