import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { HEAVY } from './test/support/heavy.ts';
import { isLong, isQuick } from './test/support/length.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { mongodProgram } from './test/support/mongod.ts';

// Node keeps the code that it compiles there, so that threads and processes of the service start in half the time.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules', '.cache', 'compile');

const hasMongodb = (process.env.MONGODB_TEST_URI ?? '') !== '' || mongodProgram() !== undefined;

/** What a client sees, the same on either database; at full length all of it runs on both. */
const onEither = {
  always: [
    'account-pools',
    'act-on-matches',
    'async-crawls',
    'attention',
    'audit',
    'batches',
    'console-sessions',
    'crawl-retries',
    'deliveries-together',
    'delivery-retries',
    'held-crawls',
    'hosts',
    'job-life',
    'kept-codings',
    'ladder',
    'proxy-budget',
    'push-controls',
    'sealed-pools',
    'search',
    'set-clock',
    'statistics',
    'storage-calls',
    'timeline',
  ],
  atFullLength: [
    'abuse/tenant-quotas',
    'admission',
    'connect-json',
    'console',
    'console-act',
    'console-addresses',
    'console-attention',
    'console-audit',
    'console-batches',
    'console-charts',
    'console-dialogs',
    'console-full',
    'console-job',
    'console-keeps',
    'console-layout',
    'console-narrow',
    'console-notices',
    'console-proxies',
    'console-streams',
    'console-tasks',
    'delivery-pace',
    'formats',
    'listings',
    'max-age',
    'monitoring',
    'notice-digest',
    'operator',
    'protocols',
    'push-again',
    'push-fields',
    'pushed-url',
    'refusal-texts',
    'result-streams',
    'rest-paths',
    'unknown-members',
    'watches',
  ],
};

const ABUSE = ['test/e2e/abuse/*.test.ts'];
const leftOut = isQuick ? HEAVY.map((pattern) => `test/${pattern}`) : [];
const onMongodb = [...onEither.always, ...(isLong ? onEither.atFullLength : [])];

export default defineConfig({
  test: {
    globalSetup: ['test/support/mongodb-setup.ts'],
    setupFiles: ['test/support/leaks.ts', 'test/support/redaction-check.ts'],
    reporters: ['default', './test/support/summary-reporter.ts'],
    // A busy machine is slow, and only failures wait that long.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // For two cores: half of the time of tests is waiting.
    maxWorkers: 4,
    // Node itself strips the types, and keeps what it compiled. Modules cannot be mocked so.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // A worker loads the service once for all of its files. What a file leaves open, or logs of secrets, fails that file.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: { name: 'embedded', include: ['test/**/*.test.ts'], exclude: [...ABUSE, ...leftOut] },
      },
      // They measure the main thread, whose collections take longer in a worker that had other files.
      {
        extends: true,
        test: { name: 'abuse', include: ABUSE, exclude: leftOut, isolate: true },
      },
      ...(hasMongodb && !isQuick
        ? [
            {
              extends: true,
              test: {
                name: 'mongodb',
                include: onMongodb.map((name) => `test/e2e/${name}.test.ts`),
                env: { TEST_STORE: 'mongodb' },
              },
            } as const,
          ]
        : []),
    ],
  },
});
