import type { ClientSession, Filter, PushOperator } from 'mongodb';
import type { Delivery, DeliveryAttempt, DeliverySummary } from '../../domain/delivery.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { tallyDelivery } from '../../domain/tally.ts';
import { MAX_KEPT_ANSWERS, MAX_LOGGED_ATTEMPTS } from '../rules.ts';
import type { DeliveryOutcome, DeliveryStore, ReplaySelector } from '../store.ts';
import type { Collections, DeliveryDocument } from './collections.ts';
import { toDeliverySummary } from './delivery-summary.ts';
import type { Delta } from './delta.ts';
import type { Lanes } from './lanes.ts';
import { wakeFields } from './lease.ts';

import { toRecord } from './records.ts';
import type { OneUpdate } from './update-each.ts';

/** Results on their way to callback URLs. */
export function createDeliveries(collections: Collections, lanes: Lanes): DeliveryStore {
  return {
    get: (crawlerId, rid) => get(collections, crawlerId, rid),

    countReplayable: (crawlerId, which, limit) =>
      collections.deliveries.countDocuments(
        { crawlerId, ...toRangeFilter(which), state: { $in: ['due', 'delivered', 'failed'] } },
        { limit },
      ),

    replay: (crawlerId, which, now) => replay(collections, lanes, { crawlerId, which, now }),
  };
}

/** The `rid`s of due deliveries that a turn claims; see `TurnWork.deliveries`. */
export async function dueDeliveries(
  collections: Collections,
  crawlerId: string,
  { limit, maxBytes }: { readonly limit: number; readonly maxBytes: number },
  now: Date,
): Promise<string[]> {
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
  return taken.map((each) => each._id);
}

/** Those of the deliveries that the claim has got. */
export async function readClaimed(
  collections: Collections,
  rids: readonly string[],
  claim: string,
): Promise<Delivery[]> {
  const claimed = await collections.deliveries
    .find({ _id: { $in: [...rids] }, mark: claim })
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

/** Adds what settled deliveries change in the counters. */
export function addSettled(delta: Delta, outcomes: readonly DeliveryOutcome[]): void {
  for (const outcome of outcomes) {
    const { kind } = outcome;
    delta.addTally(tallyDelivery(outcome));
    if (kind === 'delivered' || kind === 'failed') delta.add('deliveriesPending', -1);
  }
}

async function get(
  collections: Collections,
  crawlerId: string,
  rid: string,
): Promise<DeliverySummary | undefined> {
  const document = await collections.deliveries.findOne(
    { _id: rid, crawlerId },
    { projection: { body: 0 } },
  );
  return document === null ? undefined : toDeliverySummary(document);
}

/** One transaction makes the deliveries due, counts them and wakes the crawler. */
function replay(
  collections: Collections,
  lanes: Lanes,
  { crawlerId, which, now }: Replay,
): Promise<number> {
  const ofThese = { crawlerId, ...toRangeFilter(which) };
  return lanes.transact(crawlerId, async (session) => {
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
    if (done.modifiedCount > 0)
      await addPending(collections, crawlerId, done.modifiedCount, session);
    if (found > 0) {
      await collections.crawlers.updateOne(
        { _id: crawlerId },
        [{ $set: wakeFields(now, 'delivery') }],
        { session },
      );
    }
    return found;
  });
}

/** Changes the number of a crawler's pending deliveries, in a transaction of `Lanes.transact`. */
export async function addPending(
  { counts }: Pick<Collections, 'counts'>,
  crawlerId: string,
  by: number,
  session: ClientSession,
): Promise<void> {
  await counts.updateOne({ _id: crawlerId }, { $inc: { deliveriesPending: by } }, { session });
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

/** The write of the end of an attempt, whose delivery must still be in it. */
export function settleUpdate(outcome: DeliveryOutcome, now: Date): OneUpdate<DeliveryDocument> {
  const { rid, crawlerId, attempt, log, kind, dueAt, expiresAt } = outcome;
  const again = kind === 'retry' || kind === 'release';
  return {
    filter: { _id: rid, crawlerId, attempt, state: 'sending' },
    update: {
      $set: {
        state: again ? 'due' : kind,
        ...(again ? { due: dueAt ?? now } : {}),
        ...(expiresAt === undefined ? {} : { expiresAt }),
      },
      $unset: { epoch: 1 },
      ...(kind === 'release' ? { $inc: { attempt: -1 } } : {}),
      ...(log === undefined ? {} : { $push: toLogs(log) }),
    },
  };
}

function toLogs({ answer, ...log }: DeliveryAttempt): PushOperator<DeliveryDocument> {
  const attempts = { $each: [log], $slice: -MAX_LOGGED_ATTEMPTS };
  if (answer === undefined) return { attempts };
  const kept = { attempt: log.attempt, text: answer };
  return { attempts, answers: { $each: [kept], $slice: -MAX_KEPT_ANSWERS } };
}

function toDelivery(document: DeliveryDocument): Delivery {
  return {
    ...toRecord(document),
    crawlerId: document.crawlerId,
    callbackHeaders: JSON.parse(document.callbackHeaders) as HeaderPair[],
    attempt: document.attempt,
    wasAttempted: document.attempts.length > 0,
    createdAt: document.createdAt,
    traceparent: document.traceparent,
  };
}
