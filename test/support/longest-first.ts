import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest; begun last, they would run while the other workers have nothing left to do. */
const LONGEST = [
  'e2e/shared-database.test.ts',
  'contract/store/mongo.test.ts',
  'e2e/faults.test.ts',
  'contract/store/mongo-plans.test.ts',
  'contract/store/mongo-gated/takeover.test.ts',
  'e2e/processes.test.ts',
  'e2e/console.test.ts',
  'e2e/browser-isolation.test.ts',
  'e2e/console-tasks.test.ts',
  'e2e/crash.test.ts',
  'e2e/browser-webgl.test.ts',
  'e2e/delivery-pace.test.ts',
  'e2e/result-streams.test.ts',
  'e2e/page-garbage.test.ts',
  'e2e/browser-actions.test.ts',
  'e2e/hosts.test.ts',
  'e2e/ladder.test.ts',
  'e2e/browser-process.test.ts',
  'e2e/console-job.test.ts',
  'e2e/browser-hostile.test.ts',
  'e2e/documented-commands.test.ts',
  'e2e/lost-log.test.ts',
  'e2e/command-line/commands.test.ts',
  'e2e/backup-live.test.ts',
  'e2e/package.test.ts',
  'e2e/set-clock.test.ts',
  'e2e/browser-navigation.test.ts',
  'contract/store/sqlite.test.ts',
  'e2e/chaos.test.ts',
  'e2e/abuse/bulk.test.ts',
  'e2e/abuse/tenant.test.ts',
  'e2e/release.test.ts',
  'e2e/delivery-retries.test.ts',
  'e2e/command-line/volume.test.ts',
  'e2e/console-dialogs.test.ts',
  'unit/dispatcher/many-dead-hosts.test.ts',
  'e2e/account-pools.test.ts',
  'unit/engine/hostile-text.test.ts',
  'e2e/operate.test.ts',
  'unit/service/attention-watch.test.ts',
  'e2e/proxy-health.test.ts',
  'e2e/attention.test.ts',
];

/** Starts the longest files first, and then in vitest's own order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const at = LONGEST.findIndex((file) => moduleId.endsWith(file));
  return at === -1 ? LONGEST.length : at;
}
