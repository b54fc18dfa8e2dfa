import { repairAccounts } from './account-totals.ts';
import type { Collections } from './collections.ts';
import { sumParts } from './counts-document.ts';
import { expire } from './expiry.ts';
import { findIds } from './find-ids.ts';
import { gatherParts, moveDays } from './history.ts';
import type { Lanes } from './lanes.ts';
import { NO_WORK, setWake } from './lease.ts';
import { sweepAll } from './removal.ts';
import { endHolds } from './results.ts';
import { type KnownSamples, takeSamples } from './samples.ts';
import { measureStored } from './stored-bytes.ts';

const BATCH = 500;
/** The interval of comparisons, each of which reads every crawler. */
const COMPARE_EVERY_MS = 60_000;
/** How long one call continues while there is more to expire or to sweep up. */
const GOES_ON_MS = 10_000;

/**
 * Creates `Store.maintain`: removes documents past their retention, gathers the counters of processes
 * that have ended, and does what processes which died have not come to.
 */
export function createMaintenance(collections: Collections, lanes: Lanes) {
  let comparedAt = Number.NEGATIVE_INFINITY;
  let measured = '';
  const known: KnownSamples = new Map();

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

  return async (now: Date, signal?: AbortSignal): Promise<void> => {
    const until = performance.now() + GOES_ON_MS;
    const goesOn = (): boolean => signal?.aborted !== true && performance.now() < until;
    // First, because days may take all the time, and a round of samples is not made up for.
    await takeSamples(collections, known, now, goesOn);
    await gatherParts(collections, lanes, now, BATCH);
    await moveDays(collections, lanes, now, BATCH, goesOn);
    await endHolds(collections, now);
    await expire(collections, lanes, now, BATCH, goesOn);
    await sweepAll(collections, lanes, now, goesOn, BATCH);
    if (goesOn() && performance.now() - comparedAt >= COMPARE_EVERY_MS) {
      comparedAt = performance.now();
      await lanes.accounts.flush();
      await wakeForgotten(collections, goesOn);
      await repairAccounts(collections);
      await measureNext();
    }
  };
}

/** Wakes crawlers whose work was written by a process that died before it woke them. */
async function wakeForgotten(collections: Collections, goesOn: () => boolean): Promise<void> {
  const names = ['waiting', 'retrying', 'deliveriesPending'] as const;
  const work = { $add: names.map((name) => `$${name}`) };
  const sums = await sumParts(collections, 'crawlerId', names, {
    where: { $expr: { $gt: [work, 0] } },
  });
  const delivering = sums.filter(({ deliveriesPending }) => deliveriesPending > 0);
  const idle = await findIds(collections.crawlers, {
    _id: { $in: sums.map(({ _id }) => _id) },
    leaseOwner: null,
    wakeAt: { $gte: NO_WORK },
    pausedByMonitor: false,
    // A pause by the user holds back no deliveries.
    $or: [{ pausedByUser: false }, { _id: { $in: delivering.map(({ _id }) => _id) } }],
  });
  for (const _id of idle) {
    if (!goesOn()) return;
    // One at a time: many would take all connections of the process.
    await setWake(collections, _id);
  }
}
