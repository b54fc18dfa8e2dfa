import { expect, test } from 'vitest';
import { createAgendaScheduler } from '../../../src/scheduler/agenda/agenda-scheduler.ts';
import { createSqliteBackend } from '../../../src/scheduler/sqlite/backend.ts';
import { openSqlQuery } from '../../contract/scheduler/sqlite-harness.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';

test('runs at once after a restart what a killed process was running, however long its lock', async () => {
  const { query, close } = openSqlQuery();
  const before = createSqliteBackend({ query });
  await before.connect();
  await before.tasks.wake('crawl', 'a', new Date());
  await before.tasks.repeat('probe', 3_600_000, new Date());
  for (const name of ['crawl', 'probe'] as const) {
    await before.tasks.claimDue(name, 'killed', new Date());
  }
  const scheduler = createAgendaScheduler({
    backend: createSqliteBackend({ query }),
    processName: 'restarted',
    processEveryMs: 50,
    logger: silentLogger,
  });
  const ran: string[] = [];
  for (const name of ['crawl', 'probe'] as const) {
    scheduler.define(name, { lockMs: 3_600_000, concurrency: 1 }, async ({ key }) => {
      ran.push(`${name}/${key}`);
    });
  }
  await scheduler.start();
  await eventually(() => expect(ran.toSorted()).toEqual(['crawl/a', 'probe/']));
  await scheduler.close(1_000);
  close();
});

test('polls by index: neither later nor finished nor other tasks are read', async () => {
  const { query, close } = openSqlQuery();
  const plans: string[] = [];
  const backend = createSqliteBackend({
    exclusive: false,
    async query(sql, params) {
      if (sql.startsWith('UPDATE')) {
        const steps = await query(`EXPLAIN QUERY PLAN ${sql}`, params);
        plans.push(...steps.map(({ detail }) => String(detail)));
      }
      return query(sql, params);
    },
  });
  await backend.connect();
  await backend.tasks.claimDue('crawl', 't', new Date());
  await backend.tasks.claimLapsed('crawl', 't', new Date(), new Date());
  const reads = plans.filter((plan) => /SEARCH|SCAN|SORT|TEMP/.test(plan));
  expect(reads).toEqual([
    'SEARCH agenda_jobs USING PRIMARY KEY (id=?)',
    'SEARCH agenda_jobs USING INDEX agenda_jobs_due (name=? AND next_run_at<?)',
    'SEARCH agenda_jobs USING PRIMARY KEY (id=?)',
    'SEARCH agenda_jobs USING COVERING INDEX agenda_jobs_locked (name=? AND locked_at<?)',
  ]);
  close();
});
