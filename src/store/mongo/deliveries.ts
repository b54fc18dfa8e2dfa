import type { Filter } from 'mongodb';
import type { Delivery, DeliverySummary } from '../../domain/delivery.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { tallyDelivery } from '../../domain/tally.ts';
import { MAX_LOGGED_ATTEMPTS } from '../rules.ts';
import type { DeliveryOutcome, DeliveryStore, Lease, ReplaySelector } from '../store.ts';
import type { Collections, DeliveryDocument } from './collections.ts';
import type { Delta } from './counts.ts';
import { toDeliverySummary } from './delivery-summary.ts';
import { wakeFields } from './lease.ts';
import type { Ledger } from './ledger.ts';
import { toRecord } from './records.ts';
import { type OneUpdate, updateEach } from './update-each.ts';

/** Results on their way to callback URLs. */
export function createDeliveries(collections: Collections, ledger: Ledger): DeliveryStore {
  return {
    get: (crawlerId, rid) => get(collections, crawlerId, rid),

    countReplayable: (crawlerId, which, limit) =>
      collections.deliveries.countDocuments(
        { crawlerId, ...toRangeFilter(which), state: { $in: ['due', 'delivered', 'failed'] } },
        { limit },
      ),

    replay: (crawlerId, which, now) =>
      ledger.runExclusive(crawlerId, () => replay(collections, ledger, { crawlerId, which, now })),
  };
}

/** Claims due deliveries under a lease that is current; see `TurnWork.deliveries`. */
export async function claimDeliveries(
  collections: Collections,
  writeId: string,
  { crawlerId, epoch }: Lease,
  { limit, maxBytes }: { readonly limit: number; readonly maxBytes: number },
  now: Date,
): Promise<Delivery[]> {
  const due = await collections.deliveries
    .find({ crawlerId, state: 'due', due: { $lte: now } }, { projection: { size: 1 } })
    .sort({ due: 1, _id: 1 })
    .limit(limit)
    .toArray();
  let bytes = 0;
  const taken = due.filter(({ size }, index) => {
    bytes += size;
    return index === 0 || bytes <= maxBytes;
  });
  if (taken.length === 0) return [];
  const rids = taken.map((each) => each._id);
  await collections.deliveries.updateMany(
    { _id: { $in: rids }, state: 'due' },
    { $set: { state: 'sending', epoch, mark: writeId }, $inc: { attempt: 1 } },
  );
  const claimed = await collections.deliveries
    .find({ _id: { $in: rids }, mark: writeId })
    .toArray();
  const places = new Map(rids.map((rid, index) => [rid, index]));
  return claimed
    .toSorted((a, b) => (places.get(a._id) ?? 0) - (places.get(b._id) ?? 0))
    .map(toDelivery);
}

/** When the crawler's next delivery falls due; undefined when none waits. */
export async function nextDelivery(
  collections: Collections,
  crawlerId: string,
): Promise<Date | undefined> {
  const next = await collections.deliveries.findOne(
    { crawlerId, state: 'due' },
    { sort: { due: 1, _id: 1 }, projection: { due: 1 } },
  );
  return next?.due;
}

/** Writes the ends of attempts, and returns those that were won; the caller counts them. */
export async function settleDeliveries(
  collections: Collections,
  writeId: string,
  outcomes: readonly DeliveryOutcome[],
  now: Date,
): Promise<DeliveryOutcome[]> {
  if (outcomes.length === 0) return [];
  const updates = outcomes.map((each) => updateFor(each, now, writeId));
  const matched = await updateEach(collections.deliveries, updates);
  if (matched === outcomes.length) return [...outcomes];
  const rids = outcomes.map((each) => each.rid);
  const marked = await collections.deliveries
    .find({ _id: { $in: rids }, mark: writeId }, { projection: { _id: 1 } })
    .toArray();
  const found = new Set(marked.map((each) => each._id));
  return outcomes.filter((each) => found.has(each.rid));
}

/** Adds what settled deliveries change in the counters; the number of pending ones if `pending`. */
export function addSettled(delta: Delta, won: readonly DeliveryOutcome[], pending: boolean): void {
  for (const outcome of won) {
    const { kind } = outcome;
    delta.addTally(tallyDelivery(outcome));
    if (pending && (kind === 'delivered' || kind === 'failed')) delta.add('deliveriesPending', -1);
  }
}

async function get(
  collections: Collections,
  crawlerId: string,
  rid: string,
): Promise<DeliverySummary | undefined> {
  const document = await collections.deliveries.findOne(
    { _id: rid, crawlerId, state: { $ne: 'staged' } },
    { projection: { body: 0 } },
  );
  return document === null ? undefined : toDeliverySummary(document);
}

function replay(
  collections: Collections,
  ledger: Ledger,
  { crawlerId, which, now }: Replay,
): Promise<number> {
  const ofThese = { crawlerId, ...toRangeFilter(which) };
  return ledger.transactions.run(async (session) => {
    const waiting = await collections.deliveries.updateMany(
      { ...ofThese, state: 'due' },
      { $min: { due: now } },
      { session },
    );
    const done = await collections.deliveries.updateMany(
      { ...ofThese, state: { $in: ['delivered', 'failed'] } },
      { $set: { state: 'due', due: now } },
      { session },
    );
    const found = waiting.matchedCount + done.modifiedCount;
    if (found === 0) return 0;
    await collections.crawlers.updateOne(
      { _id: crawlerId },
      [
        {
          $set: {
            deliveriesPending: { $add: ['$deliveriesPending', done.modifiedCount] },
            moves: { $add: ['$moves', 1] },
            ...wakeFields(now, 'delivery'),
          },
        },
      ],
      { session },
    );
    return found;
  });
}

/** A call of `DeliveryStore.replay`. */
interface Replay {
  readonly crawlerId: string;
  readonly which: ReplaySelector;
  readonly now: Date;
}

function toRangeFilter(which: ReplaySelector): Filter<DeliveryDocument> {
  return 'rids' in which
    ? { _id: { $in: [...which.rids] } }
    : { createdAt: { $gte: which.from, $lt: which.to } };
}

function updateFor(
  outcome: DeliveryOutcome,
  now: Date,
  writeId: string,
): OneUpdate<DeliveryDocument> {
  const { rid, crawlerId, attempt, log, kind, dueAt, expiresAt } = outcome;
  const again = kind === 'retry' || kind === 'release';
  return {
    filter: { _id: rid, crawlerId, attempt, state: 'sending' },
    update: {
      $set: {
        state: again ? 'due' : kind,
        mark: writeId,
        ...(again ? { due: dueAt ?? now } : {}),
        ...(expiresAt === undefined ? {} : { expiresAt }),
      },
      $unset: { epoch: 1 },
      ...(kind === 'release' ? { $inc: { attempt: -1 } } : {}),
      ...(log === undefined
        ? {}
        : { $push: { attempts: { $each: [log], $slice: -MAX_LOGGED_ATTEMPTS } } }),
    },
  };
}

function toDelivery(document: DeliveryDocument): Delivery {
  return {
    ...toRecord(document),
    crawlerId: document.crawlerId,
    callbackHeaders: JSON.parse(document.callbackHeaders) as HeaderPair[],
    attempt: document.attempt,
    createdAt: document.createdAt,
    traceparent: document.traceparent,
  };
}
