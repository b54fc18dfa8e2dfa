import { setTimeout as delay } from 'node:timers/promises';
import { dayOf } from '../../domain/stats.ts';
import type { MaintenanceReport } from '../store.ts';
import type { Collections } from './collections.ts';
import type { Ledger } from './counts.ts';
import { removeBelongings } from './crawlers.ts';
import { recount, setWake } from './lease.ts';
import { resolvePending } from './push.ts';

const BATCH = 500;
/** A process that has not come back to its own unfinished writes for this long has died, or sleeps and will be ignored. */
const ABANDONED_MS = 60_000;
const SECOND_LOOK_MS = 100;
/** Comparing reads every crawler. */
const COMPARE_EVERY_MS = 60_000;

/** Makes `Store.maintain`: removes what is past its retention, and completes what processes that died have left halfway. */
export function createMaintenance(c: Collections, ledger: Ledger) {
  let comparedAt = Number.NEGATIVE_INFINITY;
  return async (now: Date): Promise<MaintenanceReport> => {
    const report = await sweep(c, ledger, now);
    if (performance.now() - comparedAt >= COMPARE_EVERY_MS) {
      comparedAt = performance.now();
      await repairAccounts(c);
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
    c.results.deleteMany(old),
    c.pushRequests.deleteMany(old),
    c.media.deleteMany(old),
  ]);
  return deliveries + results.deletedCount + requests.deletedCount + media.deletedCount;
}

async function expireDeliveries(c: Collections, now: Date): Promise<number> {
  const old = await c.deliveries
    .find({ expiresAt: { $lte: now } }, { projection: { crawlerId: 1, state: 1 } })
    .limit(BATCH)
    .toArray();
  if (old.length === 0) return 0;
  const { deletedCount } = await c.deliveries.deleteMany({ _id: { $in: old.map((d) => d._id) } });
  const pending = old.filter((each) => each.state === 'due' || each.state === 'sending');
  for (const crawlerId of new Set(pending.map((each) => each.crawlerId))) {
    const count = pending.filter((each) => each.crawlerId === crawlerId).length;
    await c.crawlers.updateOne({ _id: crawlerId }, { $inc: { deliveriesPending: -count } });
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

/** An account's total may lag behind its crawlers for a moment; what is wrong at two looks was left by a crash. */
async function repairAccounts(c: Collections): Promise<void> {
  const first = await wrongTotals(c);
  if (first.size === 0) return;
  await delay(SECOND_LOOK_MS);
  const second = await wrongTotals(c);
  for (const [accountId, off] of second) {
    if (first.get(accountId) !== off) continue;
    await c.accounts.updateOne({ _id: accountId }, { $inc: { queued: off } });
  }
}

async function wrongTotals(c: Collections): Promise<Map<string, number>> {
  const held = {
    $add: [{ $subtract: ['$live', '$running'] }, { $sum: '$pending.n' }],
  };
  const sums = await c.crawlers
    .aggregate<{ _id: string; queued: number }>([
      { $group: { _id: '$accountId', queued: { $sum: held } } },
    ])
    .toArray();
  const totals = new Map(sums.map((each) => [each._id, each.queued]));
  const accounts = await c.accounts.find({}, { projection: { queued: 1 } }).toArray();
  return new Map(
    accounts
      .map(({ _id, queued }) => [_id, (totals.get(_id) ?? 0) - queued] as const)
      .filter(([, off]) => off !== 0),
  );
}
