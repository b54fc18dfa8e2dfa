import { expect, test } from 'vitest';
import type { Account } from '../../../src/domain/account.ts';
import type { AccountLimits, AccountUsage } from '../../../src/domain/quotas.ts';
import { createQuotas } from '../../../src/service/accounts/quotas.ts';
import { UNLIMITED } from '../../support/use-cases.ts';

function setUp(defaults: Partial<AccountLimits>, limits: Partial<AccountLimits> = {}) {
  let ms = 1_000_000;
  let reads = 0;
  let usage: AccountUsage = {
    crawlers: 0,
    concurrency: 0,
    storedBytes: 0,
    queuedBytes: 0,
    queued: 0,
  };
  const account: Account = {
    accountId: 'account',
    name: 'shop',
    email: '',
    tokenHashes: { normal: '', javascript: '' },
    limits,
    createdAt: new Date(0),
  };
  const accounts = {
    get: async () => account,
    async usage() {
      reads += 1;
      return usage;
    },
  };
  const quotas = createQuotas({
    store: { accounts, rates: {} } as unknown as Parameters<typeof createQuotas>[0]['store'],
    clock: { now: () => new Date(ms) },
    defaults: { ...UNLIMITED, ...defaults },
  });
  return {
    quotas,
    account,
    pass: (by: number) => void (ms += by),
    use: (more: Partial<AccountUsage>) => void (usage = { ...usage, ...more }),
    reads: () => reads,
  };
}

test('pushes cost one look at the account’s use a second, and count what was queued since', async () => {
  const { quotas, account, pass, use, reads } = setUp({ queueBytes: 1_000 });
  for (let n = 0; n < 10; n += 1) {
    expect((await quotas.admit(account, [100])).admitted).toBe(1);
  }
  const { admitted, refusal } = await quotas.admit(account, [1]);
  expect([admitted, refusal?.reason]).toEqual([0, 'queue_bytes_quota_exceeded']);
  expect(refusal?.message).toContain('1000');
  expect(reads()).toBe(1);
  pass(1_001);
  use({ queuedBytes: 500 });
  expect(await quotas.admit(account, [300, 300, 100])).toMatchObject({ admitted: 1 });
});

test('an account’s own limit counts before the service’s, and 0 is no limit', async () => {
  const own = setUp({ storageBytes: 10 }, { storageBytes: 0 });
  own.use({ storedBytes: 1_000_000 });
  expect(await own.quotas.holds('account')).toEqual([]);
  expect(await own.quotas.admit(own.account, [1])).toMatchObject({ refusal: undefined });
  const other = setUp({ storageBytes: 10 });
  other.use({ storedBytes: 10 });
  expect(await other.quotas.holds('account')).toEqual([
    {
      reason: 'storage_full',
      detail: 'the account has stored 10 bytes of the 10 that its quota storage_bytes allows',
    },
  ]);
  await expect(other.quotas.assertStorage(other.account, 'store')).rejects.toMatchObject({
    kind: 'invalid',
    reason: 'storage_bytes_quota_exceeded',
    metadata: { limit: 10, used: 10 },
  });
});

test('probes are bounded for the account, and more closely at a host that has proved nothing', async () => {
  const { quotas, pass } = setUp({ probesPerMinute: 100 });
  let made = 0;
  const probe = async (url: string, times: number, isPaused = false): Promise<number> => {
    let now = 0;
    for (let n = 0; n < times; n += 1) {
      made += 1;
      const asked = { id: `probe ${made}`, accountId: 'account', callbackUrl: url, isPaused };
      if ((await quotas.probeWaitMs(asked)) === 0) now += 1;
    }
    return now;
  };
  // However many paths a host is named with.
  let victim = 0;
  for (let n = 0; n < 500; n += 1) victim += await probe(`https://victim.example/${n}`, 1);
  expect(victim).toBe(60);
  // The crawlers that wait for their callback URL have limits of their own.
  expect(await probe('https://victim.example/', 100, true)).toBe(60);
  pass(60_000);
  quotas.proveCallback('account', 'https://own.example/hook');
  expect(await probe('https://own.example/other', 500)).toBe(100);
  // What another account has proved says nothing about this one's right to probe.
  quotas.proveCallback('other', 'https://third.example/hook');
  pass(600_000);
  expect(await probe('https://third.example/', 500)).toBe(60);
});

test('each probe beyond the limit has a turn of its own, and is made then', async () => {
  const { quotas, pass } = setUp({ probesPerMinute: 60 });
  quotas.proveCallback('account', 'https://own.example/hook');
  const wait = (id: number): Promise<number> =>
    quotas.probeWaitMs({
      id: `${id}`,
      accountId: 'account',
      callbackUrl: `https://own.example/${id}`,
      isPaused: false,
    });
  const waits = await Promise.all(Array.from({ length: 180 }, (_, id) => wait(id)));
  expect(waits.filter((ms) => ms === 0)).toHaveLength(60);
  expect(waits.slice(60)).toEqual(Array.from({ length: 120 }, (_, n) => (n + 1) * 1_000));
  for (let id = 60; id < 180; id += 1) {
    pass(1_000);
    expect(await wait(id)).toBe(0);
  }
});
