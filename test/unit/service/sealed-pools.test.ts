import pino from 'pino';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ProxyPool } from '../../../src/domain/proxy-pools.ts';
import { createSeal } from '../../../src/domain/seal.ts';
import {
  createAccountPools,
  type OwnPoolInput,
  type SealedContent,
} from '../../../src/service/accounts/account-pools.ts';
import { createUsablePools } from '../../../src/service/crawls/usable-pools.ts';
import type { SealedPools } from '../../../src/store/store.ts';
import { createTestClock } from '../../support/test-clock.ts';

const ACCOUNT = 'account';
const input: OwnPoolInput = { proxies: ['http://user:password@proxy.example:3128'] };
const operators: readonly ProxyPool[] = [
  {
    name: 'op',
    countries: ['DE'],
    proxies: [{ id: 'p', label: 'p', endpoint: 'p', url: 'http://p.example:1' }],
  },
];
const SEALED = { kind: 'failed_precondition', reason: 'pools_sealed' };

/** A database, which processes with different keys open. */
function createDatabase() {
  const clock = createTestClock();
  let kept: SealedPools | undefined;
  return {
    clock,
    process(...secrets: [string, ...string[]]) {
      const log: string[] = [];
      const logger = pino({}, { write: (line: string) => void log.push(line) });
      const pools = createAccountPools({
        store: {
          proxyPools: {
            read: async (_accountId, known) => (kept?.version === known ? undefined : kept),
            replace: async (_accountId, known, sealed) => {
              if (known !== (kept?.version ?? 0)) return false;
              kept = { version: known + 1, sealed };
              return true;
            },
            owners: async () => (kept === undefined ? [] : ['account']),
          },
          accounts: { get: async () => undefined },
        },
        seal: createSeal<SealedContent>(secrets, 'pools'),
        clock,
        logger,
        whyNotUsable: () => undefined,
        onChange: (accountId) => usable.forget(accountId),
      });
      const usable = createUsablePools({ operators, read: pools.read, clock, logger });
      return { pools, usable, log };
    },
  };
}

describe('pools that no key of the process opens', () => {
  let database: ReturnType<typeof createDatabase>;
  let process: ReturnType<ReturnType<typeof createDatabase>['process']>;

  beforeEach(async () => {
    database = createDatabase();
    const before = database.process('first');
    for (const name of ['mine', 'other']) await before.pools.create(ACCOUNT, name, input);
    process = database.process('second');
  });

  const names = async () => (await process.pools.list(ACCOUNT)).map(({ own }) => own.name);

  test('leave the pools of the operator to crawls that name them', async () => {
    const { usable, log } = process;
    for (const wishes of [
      [{ proxy: 'op' }],
      [{ proxy: 'direct' }, { proxy: 'op', country: 'DE' }],
      [{ proxy: 'mine', tor_network: true }],
    ]) {
      expect(await usable.of(ACCOUNT, wishes)).toBe(operators);
    }
    for (const wishes of [
      [{ proxy: 'mine' }],
      [{ country: 'DE' }],
      [{ proxy: 'op' }, { proxy: 'mine' }],
    ]) {
      await expect(usable.of(ACCOUNT, wishes)).rejects.toMatchObject(SEALED);
    }
    database.clock.advance(60_000);
    await expect(usable.of(ACCOUNT, [{ proxy: 'mine' }])).rejects.toMatchObject(SEALED);
    expect(log).toHaveLength(1);
    expect(log[0]).toContain('PROXY_SEAL_KEY');
  });

  test('are dropped when the account makes a pool, and the log says so once', async () => {
    await expect(process.pools.list(ACCOUNT)).rejects.toMatchObject(SEALED);
    await process.pools.create(ACCOUNT, 'mine', input);
    await process.pools.create(ACCOUNT, 'third', input);
    expect(await names()).toEqual(['mine', 'third']);
    expect(process.log.filter((line) => line.includes('dropped'))).toHaveLength(1);
    const found = await process.usable.of(ACCOUNT, [{ proxy: 'mine' }]);
    expect(found.map(({ name }) => name)).toEqual(['mine', 'third', 'op']);
  });

  test('are dropped when the account replaces the URLs of one', async () => {
    const { update } = process.pools;
    await expect(update(ACCOUNT, 'mine', { countries: ['DE'] })).rejects.toMatchObject(SEALED);
    const refused = { kind: 'invalid', field: 'name' };
    await expect(update(ACCOUNT, 'tor', input)).rejects.toMatchObject(refused);
    await expect(process.pools.list(ACCOUNT)).rejects.toMatchObject(SEALED);
    const { own } = await update(ACCOUNT, 'mine', input);
    expect(own).toMatchObject({ name: 'mine', ...input, countries: [] });
    expect(await names()).toEqual(['mine']);
  });

  test('are dropped when the account removes one', async () => {
    await process.pools.remove(ACCOUNT, 'mine');
    expect(await names()).toEqual([]);
    const again = process.pools.remove(ACCOUNT, 'mine');
    await expect(again).rejects.toMatchObject({ kind: 'not_found' });
  });

  test('are kept until then: the process with their key reads them', async () => {
    await expect(process.pools.list(ACCOUNT)).rejects.toMatchObject(SEALED);
    expect(await database.process('first').pools.list(ACCOUNT)).toHaveLength(2);
    expect(await database.process('third', 'first').pools.list(ACCOUNT)).toHaveLength(2);
  });
});
