import { expect, test } from 'vitest';
import { attentionOf } from '../../../src/domain/attention.ts';
import { createRid } from '../../../src/domain/rid.ts';
import { createAttentionWatch } from '../../../src/service/notices/attention-watch.ts';
import { createNotices } from '../../../src/service/notices/outbox.ts';
import { makeRecord } from '../../contract/store/outcomes.ts';
import { silentLogger } from '../../support/loggers.ts';
import { createFrozenClock } from '../../support/test-clock.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const LIMIT = 2;

/** A full queue whose owner wants a mail after five minutes, and one whose owner wants none. */
async function startWatch() {
  const opened = await openEmbeddedStore();
  const { store } = opened;
  const accountLimits = { storageBytes: 1 };
  const { account, crawlers, pushing, quotas } = createUseCases(store, { accountLimits });
  const clock = createFrozenClock();
  const mails: string[] = [];
  const notices = createNotices({
    store,
    clock,
    logger: silentLogger,
    mailer: {
      async send(_account, { subject }) {
        mails.push(subject);
        return 'sent';
      },
    },
  });
  const { normal } = await account();
  const names = { loud: 5, silent: 0 };
  for (const [name, notifyAfterMinutes] of Object.entries(names)) {
    await crawlers.create(normal, name, { settings: { notifyAfterMinutes } });
    await crawlers.pause(normal, name);
  }
  const fill = async () => {
    const items = Array.from({ length: LIMIT }, (_, n) => ({
      url: `https://a.example/${n}`,
      parameters: {},
    }));
    for (const name of Object.keys(names)) await pushing.pushBatch(normal, name, items, '');
  };
  const watch = createAttentionWatch({
    store,
    notices,
    attention: ({ crawler, counters }, holds) =>
      attentionOf(crawler, counters, { crawlerQueue: LIMIT }, clock, holds),
    quotas,
    queueLimit: LIMIT,
    clock,
  });
  const signal = AbortSignal.any([]);
  return {
    mails,
    watch,
    fill,
    /** Stores a result, which fills the storage of the account, and lets the crawlers run. */
    async store(): Promise<void> {
      const { accountId } = normal.account;
      const record = makeRecord({ rid: createRid(clock.now()), url: 'https://a.example/' });
      const expiresAt = new Date(clock.now().getTime() + HOUR);
      await store.results.put({ accountId, tokenType: 'normal' }, record, clock.now(), expiresAt);
      for (const name of Object.keys(names)) await crawlers.unpause(normal, name);
    },
    purge: () => crawlers.purge(normal, 'loud'),
    /** Looks every ten seconds for a while. */
    async pass(ms: number): Promise<void> {
      for (let left = ms; left > 0; left -= 10 * SECOND) {
        clock.advance(10 * SECOND);
        await watch.tell();
        await notices.sendDue({ signal, touch: async () => undefined });
      }
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('one mail is sent once trouble has lasted, however long it lasts or comes and goes', async () => {
  await using world = await startWatch();
  const { mails, pass, fill, purge } = world;
  await fill();
  await pass(4 * MINUTE);
  expect(mails).toEqual([]);
  await pass(2 * MINUTE);
  expect(mails).toEqual(['Crawler loud needs attention: its queue is full']);
  await pass(3 * HOUR);
  await purge();
  await pass(30 * MINUTE);
  await fill();
  await pass(30 * MINUTE);
  expect(mails).toHaveLength(1);
  await purge();
  await pass(HOUR + MINUTE);
  await fill();
  await pass(6 * MINUTE);
  expect(mails).toHaveLength(2);
});

test('trouble that ends in time causes no mail', async () => {
  await using world = await startWatch();
  const { mails, pass, fill, purge } = world;
  for (let n = 0; n < 3; n += 1) {
    await fill();
    await pass(4 * MINUTE);
    await purge();
    await pass(6 * MINUTE);
  }
  expect(mails).toEqual([]);
});

test('crawlers are counted by reason', async () => {
  await using world = await startWatch();
  const none = {
    paused_by_monitor: 0,
    disk_full: 0,
    storage_full: 0,
    deliveries_fail: 0,
    crawls_fail: 0,
    host_away: 0,
    proxies_fail: 0,
    proxy_budget_used: 0,
    queue_full: 0,
  };
  expect(await world.watch.counts()).toEqual(none);
  await world.fill();
  expect(await world.watch.counts()).toEqual({ ...none, queue_full: 2 });
});

test('crawlers with queued URLs are counted while the storage of their account is full', async () => {
  await using world = await startWatch();
  await world.fill();
  await world.store();
  expect(await world.watch.counts()).toMatchObject({ storage_full: 2, disk_full: 0 });
  await world.purge();
  expect(await world.watch.counts()).toMatchObject({ storage_full: 1 });
});
