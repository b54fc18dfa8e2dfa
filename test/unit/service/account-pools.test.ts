import { expect, test } from 'vitest';
import { createSeal } from '../../../src/domain/seal.ts';
import {
  createAccountPools,
  type SealedContent,
} from '../../../src/service/accounts/account-pools.ts';
import { silentLogger } from '../../support/loggers.ts';
import { createTestClock } from '../../support/test-clock.ts';

/** A store in which another call has changed the pools before each of the first `races` changes. */
function contested(races: number) {
  let version = 0;
  let kept: string | undefined;
  let lost = 0;
  const changed: string[] = [];
  const pools = createAccountPools({
    store: {
      proxyPools: {
        read: async (_accountId, known) =>
          kept === undefined || known === version ? undefined : { version, sealed: kept },
        replace: async (_accountId, from, sealed) => {
          if (lost < races) {
            lost += 1;
            return false;
          }
          if (from !== version) return false;
          version += 1;
          kept = sealed;
          return true;
        },
        owners: async () => [],
      },
      accounts: { get: async () => undefined },
    },
    seal: createSeal<SealedContent>(['secret'], 'pools'),
    clock: createTestClock(),
    logger: silentLogger,
    whyNotUsable: () => undefined,
    onChange: (accountId) => changed.push(accountId),
  });
  return { pools, changed, lost: () => lost };
}

const input = { proxies: ['http://user:password@proxy.example:3128'] };

test('a change is made again when other calls come first', async () => {
  const { pools, changed, lost } = contested(19);
  expect(await pools.create('account', 'mine', input)).toMatchObject({ own: { name: 'mine' } });
  expect(lost()).toBe(19);
  expect(changed).toEqual(['account']);
  expect(await pools.list('account')).toHaveLength(1);
});

test('a change that other calls come before each time ends with an error, and changes nothing', async () => {
  const { pools, changed, lost } = contested(1_000);
  await expect(pools.create('account', 'mine', input)).rejects.toMatchObject({
    kind: 'failed_precondition',
    reason: 'pools_changed',
  });
  expect(lost()).toBe(20);
  expect(changed).toEqual([]);
  expect(await pools.list('account')).toEqual([]);
});
