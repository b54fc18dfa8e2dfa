/**
 * Files that take half of the processor time of all tests, as patterns below `test`. `npm test` leaves
 * them out; continuous integration and `npm run test:all` run them. What they test in depth, files
 * that stay test once: console.test.ts, browser.test.ts, crash.test.ts, commands in command-line; the
 * contracts of the stores for what several processes do on one MongoDB.
 */
export const HEAVY = [
  'component/threads/long-pages.test.ts',
  'e2e/abuse/*.test.ts',
  'e2e/account-pools.test.ts',
  'e2e/attention.test.ts',
  'e2e/backup-live.test.ts',
  'e2e/browser-*.test.ts',
  'e2e/chaos.test.ts',
  'e2e/command-line/volume.test.ts',
  'e2e/commands.test.ts',
  'e2e/console-*.test.ts',
  'e2e/database-connections.test.ts',
  'e2e/delivery-pace.test.ts',
  'e2e/documented-commands.test.ts',
  'e2e/examples.test.ts',
  'e2e/faults.test.ts',
  'e2e/held-crawls.test.ts',
  'e2e/ladder.test.ts',
  'e2e/lost-log.test.ts',
  'e2e/mcp.test.ts',
  'e2e/openapi-replies.test.ts',
  'e2e/package.test.ts',
  'e2e/page-garbage.test.ts',
  'e2e/processes.test.ts',
  'e2e/proxy-health.test.ts',
  'e2e/refused-starts.test.ts',
  'e2e/release.test.ts',
  'e2e/result-streams.test.ts',
  'e2e/set-clock.test.ts',
  'e2e/shared-database.test.ts',
  'e2e/shares.test.ts',
  'e2e/wrong-clock.test.ts',
  'unit/dispatcher/many-dead-hosts.test.ts',
  'unit/engine/hostile-text.test.ts',
];
