import { expect, test } from 'vitest';
import { createAuditTrail } from '../../../src/service/accounts/audit-trail.ts';
import { createRecordingLogger } from '../../support/loggers.ts';
import { createFrozenClock } from '../../support/test-clock.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

const change = {
  by: 'operator',
  remote: '192.0.2.1',
  requestId: 'r',
  method: 'UpdateAccount',
  crawler: '',
  changes: '{}',
} as const;

test('a record that could not be written is written later, once, or its loss is logged', async () => {
  await using opened = await openEmbeddedStore();
  const { store } = opened;
  const { normal } = await createUseCases(store).account();
  let fails = true;
  const audit = {
    ...store.audit,
    async add(...args: Parameters<typeof store.audit.add>) {
      if (fails) throw new Error('the database does not answer');
      await store.audit.add(...args);
    },
  };
  const logger = createRecordingLogger();
  const clock = createFrozenClock();
  const accounts = store.accounts;
  const trail = createAuditTrail({ store: { audit, accounts }, clock, logger });
  const list = () => trail.list(normal, {}, { limit: 9 });
  trail.note({ ...change, account: { name: normal.account.name } });
  trail.note({ ...change, account: { name: 'gone' } });
  await expect(list()).rejects.toThrow('does not answer');
  fails = false;
  expect((await list()).rows).toMatchObject([change]);
  expect((await list()).rows).toHaveLength(1);

  trail.note({ ...change, account: normal.account });
  fails = true;
  await trail.close();
  expect(logger.lines.map(({ message }) => message)).toContain('audit records are lost');
});

test('records lost because too many wait are counted in one line of the log', async () => {
  await using opened = await openEmbeddedStore();
  const { store } = opened;
  const { normal } = await createUseCases(store).account();
  const logger = createRecordingLogger();
  const trail = createAuditTrail({ store, clock: createFrozenClock(), logger });
  for (let n = 0; n < 10_003; n += 1) trail.note({ ...change, account: normal.account });
  expect((await trail.list(normal, {}, { limit: 1 })).rows).toHaveLength(1);
  await trail.close();
  const lost = logger.lines.filter(({ level }) => level === 'error');
  expect(lost).toMatchObject([{ fields: { records: 3 } }]);
});
