import type { MaintenanceReport } from '../store.ts';
import { repairAccounts } from './account-totals.ts';
import type { Collections } from './collections.ts';
import { expire } from './expiry.ts';
import { moveDays } from './history.ts';
import { setWake } from './lease.ts';
import type { Ledger } from './ledger.ts';
import { recount } from './recount.ts';
import { sweepAll } from './removal.ts';
import { resolvePending } from './reservations.ts';
import { measureStored } from './stored-bytes.ts';

const BATCH = 500;
/**
 * A process that has not completed its own writes for this long has died, or sleeps and will be
 * ignored.
 */
const ABANDONED_MS = 60_000;
/** The interval of comparisons, each of which reads every crawler. */
const COMPARE_EVERY_MS = 60_000;
/** How long one call goes on while there is more to expire or to sweep up. */
const GOES_ON_MS = 10_000;

/**
 * Creates `Store.maintain`: removes documents past their retention, and completes the writes that
 * processes which died have left unfinished.
 */
export function createMaintenance(collections: Collections, ledger: Ledger) {
  let comparedAt = Number.NEGATIVE_INFINITY;
  let measured = '';

  /** Measures one account per call, in turn. */
  async function measureNext(): Promise<void> {
    const projection = { projection: { _id: 1 }, sort: { _id: 1 } } as const;
    const next =
      (await collections.accounts.findOne({ _id: { $gt: measured } }, projection)) ??
      (await collections.accounts.findOne({}, projection));
    if (next === null) return;
    measured = next._id;
    await measureStored(collections, next._id);
  }

  return async (now: Date, signal?: AbortSignal): Promise<MaintenanceReport> => {
    const until = performance.now() + GOES_ON_MS;
    const goesOn = (): boolean => signal?.aborted !== true && performance.now() < until;
    const abandoned = new Date(now.getTime() - ABANDONED_MS);
    await moveDays(collections, now, BATCH, goesOn);
    const repaired =
      (await applyAbandoned(collections, ledger, abandoned, now)) +
      (await resolvePending(collections, abandoned, now));
    const expired = await expire(collections, ledger, now, BATCH, goesOn);
    const swept = await sweepAll(collections, ledger.transactions, now, goesOn, BATCH);
    await ledger.removals.flush();
    if (goesOn() && performance.now() - comparedAt >= COMPARE_EVERY_MS) {
      comparedAt = performance.now();
      await ledger.accounts.flush();
      await repairAccounts(collections);
      await measureNext();
    }
    return { expired, repaired: repaired + swept };
  };
}

/**
 * Applies the tombstones that their process has left, and returns the number of crawlers that had
 * some.
 */
async function applyAbandoned(
  collections: Collections,
  ledger: Ledger,
  before: Date,
  now: Date,
): Promise<number> {
  const left = await collections.jobs
    .find({ state: 'ended', endedAt: { $lte: before } }, { projection: { crawlerId: 1, by: 1 } })
    .limit(BATCH)
    .toArray();
  const owners = new Map(left.map((each) => [`${each.crawlerId}/${each.by}`, each]));
  for (const { crawlerId, by: processId = '' } of owners.values()) {
    await ledger.runExclusive(crawlerId, () => ledger.recover(crawlerId, processId, now));
    await recount(collections, crawlerId, now);
    await setWake(collections, crawlerId);
  }
  return new Set(left.map((each) => each.crawlerId)).size;
}
