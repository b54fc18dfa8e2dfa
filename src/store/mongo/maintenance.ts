import { setTimeout as delay } from 'node:timers/promises';
import { INTERNAL_PREFIX } from '../../domain/crawler-name.ts';
import { storedBytesOf } from '../../domain/quotas.ts';
import { dayOf } from '../../domain/stats.ts';
import type { MaintenanceReport } from '../store.ts';
import type { AccountDocument, Collections } from './collections.ts';
import type { Ledger } from './counts.ts';
import { removeBelongings } from './crawlers.ts';
import { recount, setWake } from './lease.ts';
import { resolvePending } from './push.ts';
import { expireResults, measureStored, sweepRemovedAccounts } from './stored-bytes.ts';

const BATCH = 500;
/** A process that has not come back to its own unfinished writes for this long has died, or sleeps and will be ignored. */
const ABANDONED_MS = 60_000;
const SECOND_LOOK_MS = 100;
/** Comparing reads every crawler. */
const COMPARE_EVERY_MS = 60_000;

/** Makes `Store.maintain`: removes what is past its retention, and completes what processes that died have left halfway. */
export function createMaintenance(c: Collections, ledger: Ledger) {
  let comparedAt = Number.NEGATIVE_INFINITY;
  let measured = '';

  /** One account a time, in turn. */
  async function measureNext(): Promise<void> {
    const projection = { projection: { _id: 1 }, sort: { _id: 1 } } as const;
    const next =
      (await c.accounts.findOne({ _id: { $gt: measured } }, projection)) ??
      (await c.accounts.findOne({}, projection));
    if (next === null) return;
    measured = next._id;
    await measureStored(c, next._id);
  }

  return async (now: Date): Promise<MaintenanceReport> => {
    const report = await sweep(c, ledger, now);
    if (performance.now() - comparedAt >= COMPARE_EVERY_MS) {
      comparedAt = performance.now();
      await repairAccounts(c);
      await measureNext();
    }
    return report;
  };
}

async function sweep(c: Collections, ledger: Ledger, now: Date): Promise<MaintenanceReport> {
  const abandoned = new Date(now.getTime() - ABANDONED_MS);
  await moveDays(c, now);
  const expired = await expire(c, now);
  const repaired =
    (await applyAbandoned(c, ledger, abandoned, now)) +
    (await resolvePending(c, abandoned, now)) +
    (await finishRemovals(c));
  return { expired, repaired };
}

async function expire(c: Collections, now: Date): Promise<number> {
  const old = { expiresAt: { $lte: now } };
  const [deliveries, results, requests, media] = await Promise.all([
    expireDeliveries(c, now),
    expireResults(c, now),
    c.pushRequests.deleteMany(old),
    c.media.deleteMany(old),
  ]);
  const removed = await sweepRemovedAccounts(c, now);
  return deliveries + results + removed + requests.deletedCount + media.deletedCount;
}

async function expireDeliveries(c: Collections, now: Date): Promise<number> {
  const old = await c.deliveries
    .find({ expiresAt: { $lte: now } }, { projection: { crawlerId: 1, state: 1, size: 1 } })
    .limit(BATCH)
    .toArray();
  if (old.length === 0) return 0;
  const { deletedCount } = await c.deliveries.deleteMany({ _id: { $in: old.map((d) => d._id) } });
  const pending = old.filter((each) => each.state === 'due' || each.state === 'sending');
  for (const crawlerId of new Set(pending.map((each) => each.crawlerId))) {
    const count = pending.filter((each) => each.crawlerId === crawlerId).length;
    await c.crawlers.updateOne({ _id: crawlerId }, { $inc: { deliveriesPending: -count } });
  }
  // See `expireResults`.
  if (deletedCount === old.length) {
    for (const [crawlerId, gone] of Map.groupBy(old, (each) => each.crawlerId)) {
      const crawler = await c.crawlers.findOne(
        { _id: crawlerId },
        { projection: { accountId: 1 } },
      );
      if (crawler === null) continue;
      const storedBytes = -gone.reduce((sum, { size }) => sum + storedBytesOf(size), 0);
      await c.accounts.updateOne({ _id: crawler.accountId }, { $inc: { storedBytes } });
    }
  }
  return deletedCount;
}

/** Applies the ends whose process did not; how many crawlers were behind. */
async function applyAbandoned(
  c: Collections,
  ledger: Ledger,
  before: Date,
  now: Date,
): Promise<number> {
  const left = await c.jobs
    .find({ state: 'ended', endedAt: { $lte: before } }, { projection: { crawlerId: 1, by: 1 } })
    .limit(BATCH)
    .toArray();
  const owners = new Map(left.map((each) => [`${each.crawlerId}/${each.by}`, each]));
  for (const { crawlerId, by = '' } of owners.values()) {
    await ledger.inTurn(crawlerId, () => ledger.recover(crawlerId, by, now));
    await recount(c, crawlerId);
    await setWake(c, crawlerId);
  }
  return new Set(left.map((each) => each.crawlerId)).size;
}

async function finishRemovals(c: Collections): Promise<number> {
  const left = await c.removals.find().limit(BATCH).toArray();
  for (const { _id } of left) {
    const crawler = await c.crawlers.findOne({ _id }, { projection: { _id: 1 } });
    if (crawler === null) await removeBelongings(c, _id);
    else await c.removals.deleteOne({ _id });
  }
  return left.length;
}

/** Gives days that are over to the history, so that a crawler's document stays small. Doing it twice does nothing. */
async function moveDays(c: Collections, now: Date): Promise<void> {
  // Yesterday stays: a process whose clock is behind may still write it.
  const yesterday = dayOf(new Date(now.getTime() - 86_400_000));
  const crawlers = await c.crawlers
    .find({ firstDay: { $lt: yesterday } }, { projection: { days: 1 } })
    .limit(BATCH)
    .toArray();
  for (const { _id: crawlerId, days } of crawlers) {
    const over = Object.keys(days).filter((day) => day < yesterday);
    await Promise.all(
      over.map((day) =>
        c.history.replaceOne(
          { _id: `${crawlerId}/${day}` },
          { crawlerId, day, counts: days[day] ?? {} },
          { upsert: true },
        ),
      ),
    );
    const kept = Object.keys(days).filter((day) => day >= yesterday);
    const next = kept.toSorted()[0];
    await c.crawlers.updateOne({ _id: crawlerId }, {
      $unset: {
        ...Object.fromEntries(over.map((day) => [`days.${day}`, ''])),
        ...(next === undefined ? { firstDay: '' } : {}),
      },
      ...(next === undefined ? {} : { $set: { firstDay: next } }),
    } as never);
  }
}

type Totals = Required<
  Pick<AccountDocument, 'queued' | 'crawlers' | 'concurrency' | 'queuedBytes'>
>;

/** An account's totals may lag behind its crawlers for a moment; what is wrong at two looks was left by a crash. */
async function repairAccounts(c: Collections): Promise<void> {
  const first = await wrongTotals(c);
  if (first.size === 0) return;
  await delay(SECOND_LOOK_MS);
  const second = await wrongTotals(c);
  for (const [accountId, off] of second) {
    const same = Object.entries(off).filter(
      ([name, by]) => by !== 0 && first.get(accountId)?.[name as keyof Totals] === by,
    );
    if (same.length === 0) continue;
    await c.accounts.updateOne({ _id: accountId }, { $inc: Object.fromEntries(same) });
  }
}

/** By how much the totals of accounts differ from what their crawlers say. */
async function wrongTotals(c: Collections): Promise<Map<string, Totals>> {
  const own = { $eq: [{ $substrCP: ['$name', 0, 1] }, INTERNAL_PREFIX] };
  const sums = await c.crawlers
    .aggregate<Totals & { _id: string; pending: number }>([
      {
        $group: {
          _id: '$accountId',
          queued: {
            $sum: { $add: [{ $subtract: ['$live', '$running'] }, { $sum: '$pending.n' }] },
          },
          crawlers: { $sum: { $cond: [own, 0, 1] } },
          concurrency: { $sum: { $cond: [own, 0, '$concurrency'] } },
          queuedBytes: { $sum: '$liveBytes' },
          pending: { $sum: { $size: '$pending' } },
        },
      },
    ])
    .toArray();
  const totals = new Map(sums.map((each) => [each._id, each]));
  const accounts = await c.accounts
    .find({}, { projection: { queued: 1, crawlers: 1, concurrency: 1, queuedBytes: 1 } })
    .toArray();
  const wrong = accounts.map((account): [string, Totals] => {
    const sum = totals.get(account._id);
    const off = (name: keyof Totals): number => (sum?.[name] ?? 0) - (account[name] ?? 0);
    // A push that is under way has counted its bytes in the account only.
    const queuedBytes = (sum?.pending ?? 0) > 0 ? 0 : off('queuedBytes');
    const [queued, crawlers, concurrency] = [off('queued'), off('crawlers'), off('concurrency')];
    return [account._id, { queued, crawlers, concurrency, queuedBytes }];
  });
  return new Map(wrong.filter(([, off]) => Object.values(off).some((by) => by !== 0)));
}
