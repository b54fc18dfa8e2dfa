import { describe, expect, test } from 'vitest';
import type { Lease, Share, ShareStore, Store } from '../../../../src/store/store.ts';
import { eventually } from '../../../support/eventually.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { toDelivery, toSettlement, toStored } from '../outcomes.ts';
import {
  at,
  claimJobs,
  finishJobs,
  makeJobs,
  only,
  settleDeliveries,
  TTL_MS,
} from '../store-harness.ts';
import { isCommit, type Processes, withProcesses } from './gated.ts';

const ALL = '0123456789abcdef';

function sharesOf({ shares }: Store): ShareStore {
  if (shares === undefined) throw new Error('this store has no shares');
  return shares;
}

/** A crawler with jobs that one process leads, and of which another has a share with eight digits. */
async function shared({ bench, stopped }: Processes, jobs = 64) {
  const crawler = await bench.crawler({ delivery: 'webhook', concurrency: 100 });
  const { crawlerId } = crawler;
  await bench.push(makeJobs(crawler, jobs));
  const lead = await bench.lease(crawler);
  const none = { revision: 0, wantsHelp: true, shares: [] };
  const revision = await sharesOf(bench.store).give(lead, none, at(0));
  const helper = await sharesOf(stopped).join(crawlerId, 'helper', 50, TTL_MS, at(0));
  if (revision === undefined || helper === undefined) throw new Error('nobody helps');
  const share: Share = {
    shareId: -helper.epoch,
    processId: 'helper',
    room: 50,
    slots: 50,
    heldSlots: 50,
    digits: '89abcdef',
    heldDigits: '89abcdef',
    awaits: false,
  };
  const given = { revision: revision + 1, wantsHelp: false, shares: [share] };
  const written = await sharesOf(bench.store).give(lead, given, at(0));
  if (written === undefined) throw new Error('the share was not written');
  return { crawler, lead, helper, share, revision: written };
}

async function newsOf(store: Store, lease: Lease, ms: number, ttlMs?: number) {
  return only(await store.queue.visit([lease], at(ms), ttlMs));
}

describe.skipIf(mongodbUri === '')('shares of a crawler', () => {
  test(
    'end with the process that has them, its leases too',
    withProcesses(async (processes) => {
      const { bench, stopped } = processes;
      const { crawler, lead, share, revision } = await shared(processes);
      const { crawlerId } = crawler;
      const { endOf } = sharesOf(bench.store);
      expect(await endOf('nobody', at(1))).toEqual({ crawlerIds: [], shares: 0 });
      expect(await newsOf(bench.store, lead, 1)).toMatchObject({ sharing: { shares: [share] } });
      expect(await endOf('helper', at(2))).toEqual({ crawlerIds: [], shares: 1 });
      expect(await newsOf(bench.store, lead, 2)).toMatchObject({
        held: true,
        sharing: { revision: revision + 1, shares: [] },
      });
      expect(await stopped.queue.acquire(crawlerId, 'next', TTL_MS, at(3))).toBeUndefined();
      expect(await endOf(lead.owner, at(3))).toEqual({ crawlerIds: [crawlerId], shares: 0 });
      expect(await stopped.queue.acquire(crawlerId, 'next', TTL_MS, at(3))).toBeDefined();
      expect(await newsOf(bench.store, lead, 3)).toMatchObject({ held: false });
    }),
  );

  test(
    'crawlers of a pace group have one lead process at a time',
    withProcesses(async ({ bench, stopped }) => {
      const politeness = { maxPerHost: 1, delayMs: 0, robotsTxt: false, group: 'together' };
      const { accountId } = await bench.crawler();
      const make = (group: string) =>
        bench.crawler({ accountId, politeness: { ...politeness, group } });
      const [a, b, other] = await Promise.all([make('g'), make('g'), make('h')]);
      const acquire = (store: Store, { crawlerId }: { crawlerId: string }, owner: string, ms = 0) =>
        store.queue.acquire(crawlerId, owner, TTL_MS, at(ms));
      const first = await acquire(bench.store, a, 'first');
      expect(first).toBeDefined();
      expect(await acquire(stopped, b, 'second')).toBeUndefined();
      expect(await acquire(stopped, other, 'second')).toBeDefined();
      expect(await acquire(bench.store, b, 'first')).toBeDefined();
      // Once the first is silent, its leases lapse together.
      const later = TTL_MS + 1;
      expect(await acquire(stopped, b, 'second', later)).toBeDefined();
      expect(await acquire(bench.store, a, 'first', later)).toBeUndefined();
      for (let round = 1; round <= 10; round += 1) {
        const ms = later + round * (TTL_MS + 1);
        const both = await Promise.all([
          acquire(bench.store, a, 'first', ms),
          acquire(stopped, b, 'second', ms),
        ]);
        expect(both.filter((each) => each !== undefined).length).toBeLessThanOrEqual(1);
      }
    }),
  );

  test(
    'crawlers of a pace group that wait are found by the process that leads the group',
    withProcesses(async ({ bench, stopped }) => {
      const politeness = { maxPerHost: 1, delayMs: 0, robotsTxt: false, group: 'g' };
      const { accountId } = await bench.crawler();
      const [led, waiting] = [
        await bench.crawler({ accountId, politeness }),
        await bench.crawler({ accountId, politeness }),
      ];
      const elsewhere = await bench.crawler({ politeness });
      await bench.store.queue.acquire(led.crawlerId, 'first', TTL_MS, at(0));
      for (const crawler of [led, waiting, elsewhere]) await bench.push(makeJobs(crawler, 1));
      const { wanted } = sharesOf(stopped);
      expect(await wanted(9, 'first', at(1_000))).toEqual({
        helper: [],
        lead: [elsewhere.crawlerId],
        grouped: [waiting.crawlerId],
      });
      const forOthers = { helper: [], lead: [elsewhere.crawlerId], grouped: [] };
      expect(await wanted(9, 'second', at(1_000))).toEqual(forOthers);
      // Nobody leads the group any more.
      const { lead } = await wanted(9, 'second', at(TTL_MS + 1_000));
      expect(new Set(lead)).toEqual(
        new Set([led.crawlerId, waiting.crawlerId, elsewhere.crawlerId]),
      );
    }),
  );

  test(
    'a lease says until when other processes may have crawled',
    withProcesses(async (processes) => {
      const { bench, stopped } = processes;
      const stores = { here: bench.store, there: stopped };
      const acquire = async (
        { crawlerId }: { crawlerId: string },
        owner: keyof typeof stores,
        ms: number,
      ) => {
        const lease = await stores[owner].queue.acquire(crawlerId, owner, TTL_MS, at(ms));
        if (lease === undefined) throw new Error('the lease was not taken');
        const release = (end: number) => stores[owner].queue.release(lease, at(end));
        return { formerUntil: lease.formerUntil, release };
      };
      const made = await bench.crawler();
      const first = await acquire(made, 'here', 0);
      expect(first.formerUntil).toEqual(new Date(0));
      await first.release(100);
      // What a process has crawled itself it knows.
      const again = await acquire(made, 'here', 300);
      expect(again.formerUntil).toEqual(new Date(0));
      await again.release(400);
      expect((await acquire(made, 'there', 500)).formerUntil).toEqual(at(400));
      // It dies, and its lease lapses.
      const after = await acquire(made, 'here', TTL_MS + 9_000);
      expect(after.formerUntil).toEqual(at(TTL_MS + 500));

      const politeness = { maxPerHost: 1, delayMs: 0, robotsTxt: false, group: 'g' };
      const member = () => bench.crawler({ accountId: made.accountId, politeness });
      const [a, b] = [await member(), await member()];
      const led = await acquire(a, 'here', 0);
      // One that may not lead a member has crawled nothing.
      await expect(acquire(b, 'there', 600)).rejects.toThrow('not taken');
      await led.release(700);
      const other = await acquire(b, 'there', 900);
      expect(other.formerUntil).toEqual(at(700));
      await other.release(950);
      expect((await acquire(a, 'there', 1_000)).formerUntil).toEqual(at(700));
      expect((await acquire(b, 'there', 1_100)).formerUntil).toEqual(at(700));

      const { crawler, lead, helper } = await shared(processes, 0);
      await bench.store.queue.release(lead, at(1_000));
      // The helper still crawls.
      const next = await acquire(crawler, 'here', 2_000);
      expect(next.formerUntil).toBeUndefined();
      await stopped.queue.release(helper, at(3_000));
      await next.release(2_500);
      expect((await acquire(crawler, 'here', 4_000)).formerUntil).toEqual(at(3_000));
    }),
  );

  test(
    'each process finds the jobs of its digits alone',
    withProcesses(async (processes) => {
      const { bench, stopped } = processes;
      const { lead, helper } = await shared(processes);
      const look = (store: Store, lease: Lease, digits: string) =>
        store.queue.turn(lease, { look: { limit: 100, digits } }, at(1));
      const own = await look(bench.store, lead, '01234567');
      const others = await look(stopped, helper, '89abcdef');
      expect(own.jobs.length + others.jobs.length).toBe(64);
      expect(own.jobs.every(({ rid }) => '01234567'.includes(rid.at(-1) ?? '?'))).toBe(true);
      expect(others.jobs.every(({ rid }) => '89abcdef'.includes(rid.at(-1) ?? '?'))).toBe(true);
      expect((await look(bench.store, lead, ALL)).jobs).toHaveLength(64);
    }),
  );

  test(
    'counters add up, whichever process starts, ends and delivers',
    withProcesses(async (processes) => {
      const { bench, stopped } = processes;
      const { crawler, lead, helper } = await shared(processes, 2);
      const first = only((await claimJobs(stopped, helper, 1, at(1))).jobs);
      const second = only((await claimJobs(bench.store, lead, 1, at(1))).jobs);
      expect(await bench.counters(crawler)).toMatchObject({ running: 2, waiting: 0 });
      const end = toDelivery(first, {}, { held: true });
      const { verdicts, held } = await finishJobs(stopped, [end], at(2), helper);
      expect(verdicts).toEqual(['won']);
      expect(
        (await finishJobs(bench.store, [toDelivery(second, {}, { held: true })], at(2), lead))
          .verdicts,
      ).toEqual(['won']);
      expect(await bench.counters(crawler)).toMatchObject({ completed: 2, deliveriesPending: 2 });
      const settled = await settleDeliveries(
        stopped,
        [toSettlement(only(held), 'delivered')],
        at(3),
      );
      expect(settled).toEqual(['won']);
      expect(await bench.counters(crawler)).toMatchObject({ running: 0, deliveriesPending: 1 });
    }),
  );

  test(
    'turns of a lead and its helper at once abort neither, and each crawl counts once',
    withProcesses(async (processes) => {
      const { bench, stopped, gate } = processes;
      const { crawler, lead, helper } = await shared(processes);
      const start = async (store: Store, lease: Lease, digits: string) => {
        const { jobs } = await store.queue.turn(lease, { look: { limit: 64, digits } }, at(1));
        const started = jobs.map(({ rid }) => ({ rid, attempt: 1, startedAt: at(1) }));
        const { lost } = await store.queue.turn(lease, { started }, at(1));
        expect(lost).toEqual([]);
        return jobs.length;
      };
      const commit = gate.hold(isCommit);
      const starting = start(stopped, helper, '89abcdef');
      await commit.reached;
      // The starts of one are written, and not committed.
      const own = await start(bench.store, lead, '01234567');
      commit.release();
      expect(own + (await starting)).toBe(64);
      expect(stopped.transactions?.().aborted).toBe(0);
      expect(bench.store.transactions?.().aborted).toBe(0);
      expect(await bench.counters(crawler)).toMatchObject({ waiting: 0, running: 64 });
    }),
  );

  test(
    'no process changes shares that others changed after it read them, and a helper gives up nothing twice',
    withProcesses(async (processes) => {
      const { bench, stopped } = processes;
      const { crawler, lead, helper, share, revision } = await shared(processes);
      const less = { ...share, slots: 30, digits: '89ab' };
      const older = { revision: revision - 1, wantsHelp: false, shares: [less] };
      expect(await sharesOf(bench.store).give(lead, older, at(1))).toBeUndefined();
      const newer = await sharesOf(bench.store).give(lead, { ...older, revision }, at(1));
      expect(newer).toBe(revision + 1);
      // A share that its lead has changed since is not what the helper keeps to.
      await sharesOf(stopped).keepTo(
        helper,
        { slots: 50, digits: share.digits, heldDigits: share.digits, room: 50 },
        at(2),
      );
      expect((await newsOf(stopped, helper, 2)).sharing?.shares).toMatchObject([
        { heldDigits: share.digits },
      ]);
      await sharesOf(stopped).keepTo(
        helper,
        { slots: 40, digits: '89ab', heldDigits: '89ab', room: 50 },
        at(3),
      );
      const { sharing } = await newsOf(bench.store, lead, 3);
      expect(sharing).toMatchObject({
        revision: revision + 2,
        shares: [{ slots: 30, heldSlots: 40, digits: '89ab', heldDigits: '89ab' }],
      });
      expect(await bench.counters(crawler)).toMatchObject({
        helpers: [{ processId: 'helper', slots: 40 }],
      });
      expect((await sharesOf(stopped).wanted(9, 'p', at(3))).helper).toEqual([]);
      const late = await sharesOf(stopped).join(crawler.crawlerId, 'late', 9, TTL_MS, at(3));
      expect(late).toBeUndefined();
    }),
  );

  test(
    'each account is helped in turn, however many of its crawlers want help',
    withProcesses(async ({ bench, stopped, c }) => {
      const { accountId } = await bench.crawler();
      for (let n = 1; n < 30; n += 1) await bench.crawler({ accountId });
      const other = await bench.crawler();
      await c.crawlers.updateMany({}, { $set: { wantsHelp: true } });
      const { helper: wanted } = await sharesOf(stopped).wanted(10, 'p', at(0));
      expect(wanted).toHaveLength(10);
      expect(wanted.slice(0, 2)).toContain(other.crawlerId);
      // Processes that look at the same moment begin with different ones.
      await eventually(async () => {
        const { helper: again } = await sharesOf(stopped).wanted(10, 'p', at(0));
        expect(again.slice(2)).not.toEqual(wanted.slice(2));
      });
      await c.crawlers.updateOne({ _id: other.crawlerId }, { $unset: { wantsHelp: '' } });
      const { helper: all } = await sharesOf(stopped).wanted(50, 'p', at(0));
      expect(new Set(all).size).toBe(30);
      expect(all).not.toContain(other.crawlerId);
    }),
  );

  test(
    'a crawler whose lead has died is found soon after its lease, and not before',
    withProcesses(async (processes) => {
      const { stopped } = processes;
      const { crawler } = await shared(processes, 3);
      expect((await sharesOf(stopped).wanted(9, 'p', at(TTL_MS))).lead).toEqual([]);
      const { lead } = await sharesOf(stopped).wanted(9, 'p', at(TTL_MS + 1_000));
      expect(lead).toEqual([crawler.crawlerId]);
    }),
  );

  test(
    'the work of a helper is left to it when the lead changes, and taken back when its share has lapsed',
    withProcesses(async (processes) => {
      const { bench, stopped } = processes;
      const { crawler, helper } = await shared(processes, 3);
      const { jobs } = await claimJobs(stopped, helper, 2, at(1));
      const [job, other] = jobs;
      if (job === undefined || other === undefined) throw new Error('two jobs were pushed');
      // The lead is gone; the helper continues.
      expect((await newsOf(stopped, helper, TTL_MS - 1, TTL_MS)).held).toBe(true);
      const next = await bench.lease(crawler, at(TTL_MS + 1), 'next');
      expect(next.sharing?.shares).toMatchObject([{ processId: 'helper', heldSlots: 50 }]);
      expect(await bench.counters(crawler)).toMatchObject({ running: 2 });
      expect(
        (await finishJobs(stopped, [toDelivery(job)], at(TTL_MS + 2), helper)).verdicts,
      ).toEqual(['won']);
      // Now the helper is gone.
      const later = 2 * TTL_MS;
      // The next look of the lead ends the share, which comes sooner than its next renewal.
      const news = await newsOf(bench.store, next, later);
      expect(news).toMatchObject({ held: true, sharing: { shares: [] } });
      expect(await bench.counters(crawler)).toMatchObject({ running: 0, waiting: 2, completed: 1 });
      expect(
        (await finishJobs(stopped, [toStored(other)], at(later + 1), helper)).verdicts,
      ).toEqual(['lost']);
      const taken = await stopped.queue.turn(helper, { look: { limit: 9 } }, at(later + 2));
      expect(taken).toMatchObject({ leaseLost: true, jobs: [] });
      expect((await newsOf(stopped, helper, later + 2, TTL_MS)).held).toBe(false);
    }),
  );

  test(
    'a share that is given back leaves nothing running, and the crawler has a lead again at once',
    withProcesses(async (processes) => {
      const { bench, stopped } = processes;
      const { crawler, lead, helper } = await shared(processes, 3);
      await claimJobs(stopped, helper, 2, at(1));
      const { wakeAt } = await bench.store.queue.release(lead, at(2));
      expect(wakeAt?.getTime()).toBeLessThanOrEqual(at(2).getTime());
      expect(await bench.store.queue.crawlersWithWorkDue(at(2), 9)).toEqual([crawler.crawlerId]);
      await stopped.queue.release(helper, at(3));
      expect(await bench.counters(crawler)).toMatchObject({ running: 0, waiting: 3 });
      expect(await bench.counters(crawler)).not.toHaveProperty('helpers');
      expect(await bench.store.queue.crawlersWithWorkDue(at(3), 9)).toEqual([crawler.crawlerId]);
    }),
  );

  test(
    'a process that only helps a crawler does not renew a lease of it that it has lost track of',
    withProcesses(async (processes) => {
      const { bench } = processes;
      const { crawler, helper } = await shared(processes, 3);
      const other = await bench.crawler();
      const led = await bench.lease(other);
      const share = { ...helper, owner: led.owner };
      await bench.store.queue.visit([led, share], at(TTL_MS - 1), TTL_MS);
      expect(
        await bench.store.queue.acquire(crawler.crawlerId, 'next', TTL_MS, at(TTL_MS + 1)),
      ).toBeDefined();
    }),
  );
});
