import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { mongodProgram } from './test/support/mongod.ts';

// Node keeps the code that it compiles there, so that threads and processes of the service start in half the time.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules', '.cache', 'compile');

const hasMongodb = (process.env.MONGODB_TEST_URI ?? '') !== '' || mongodProgram() !== undefined;

/** What a client sees, the same on either database. */
const onEither = [
  'abuse/tenant-quotas',
  'admission',
  'async-crawls',
  'crawl-retries',
  'delivery-pace',
  'delivery-retries',
  'formats',
  'monitoring',
  'notice-digest',
  'protocols',
  'pushed-url',
  'refusal-texts',
  'rest-paths',
  'statistics',
  'storage-calls',
].map((name) => `test/e2e/${name}.test.ts`);

export default defineConfig({
  test: {
    globalSetup: ['test/support/mongodb-setup.ts'],
    setupFiles: ['test/support/leaks.ts'],
    reporters: ['default', './test/support/summary-reporter.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: each file starts servers and databases of its own.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: 'embedded', include: ['test/**/*.test.ts'] } },
      ...(hasMongodb
        ? [
            {
              extends: true,
              test: { name: 'mongodb', include: onEither, env: { TEST_STORE: 'mongodb' } },
            } as const,
          ]
        : []),
    ],
  },
});
