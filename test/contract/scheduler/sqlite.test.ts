import { createSqliteBackend } from '../../../src/scheduler/sqlite/backend.ts';
import { schedulerContract } from './scheduler-contract.ts';
import type { SchedulerDatabase } from './scheduler-harness.ts';
import { openSqlQuery } from './sqlite-harness.ts';
import { tasksContract } from './tasks-contract.ts';

async function open(): Promise<SchedulerDatabase> {
  const { query, close } = openSqlQuery();
  return {
    backend: () => createSqliteBackend({ query, exclusive: false }),
    close: async () => close(),
  };
}

for (const contract of [schedulerContract, tasksContract]) contract('SQLite', open);
