import type { Filter, PushOperator, UpdateOneModel } from 'mongodb';
import type { Delivery, DeliveryAttempt } from '../../domain/delivery.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { MAX_KEPT_ANSWERS } from '../kept-delivery.ts';
import { MAX_LOGGED_ATTEMPTS } from '../rules.ts';
import type { DeliveryOutcome, DeliveryStore, ReplaySelector } from '../store.ts';
import type { Collections, DeliveryDocument } from './collections.ts';
import type { Lanes } from './lanes.ts';
import { wakeNow } from './lease.ts';
import { toDeliverySummary, toRecord } from './records.ts';

/** Results on their way to callback URLs. */
export function createDeliveries(collections: Collections, lanes: Lanes): DeliveryStore {
  const { deliveries } = collections;
  return {
    async get(crawlerId, rid) {
      const one = { _id: rid, crawlerId };
      const document = await deliveries.findOne(one, { projection: { body: 0 } });
      return document === null ? undefined : toDeliverySummary(document);
    },

    countReplayable: (crawlerId, which, limit) =>
      deliveries.countDocuments(
        { crawlerId, ...toRangeFilter(which), state: { $in: ['due', 'delivered', 'failed'] } },
        { limit },
      ),

    /** One transaction makes the deliveries due, counts them and wakes the crawler. */
    replay: (crawlerId, which, now) =>
      lanes.runExclusive(crawlerId, async () => {
        const ofThese = { crawlerId, ...toRangeFilter(which) };
        const replayed = await lanes.change(crawlerId, now, async (session, changes) => {
          const waiting = await deliveries.updateMany(
            { ...ofThese, state: 'due' },
            { $min: { due: now } },
            { session },
          );
          const done = await deliveries.updateMany(
            { ...ofThese, state: { $in: ['delivered', 'failed'] } },
            { $set: { state: 'due', due: now } },
            { session },
          );
          changes.add('deliveriesPending', done.modifiedCount);
          const found = waiting.matchedCount + done.modifiedCount;
          if (found > 0) await wakeNow(collections, crawlerId, now, 'delivery', session);
          return found;
        });
        return replayed ?? 0;
      }),
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

/** Those of the deliveries that the lease has claimed, in the same order. */
export async function readClaimed(
  collections: Collections,
  rids: readonly string[],
  epoch: number,
): Promise<Delivery[]> {
  const claimed = await collections.deliveries
    .find({ _id: { $in: [...rids] }, state: 'sending', epoch })
    .toArray();
  const found = new Map(claimed.map((each) => [each._id, each]));
  return rids.flatMap((rid) => found.get(rid) ?? []).map(toDelivery);
}

function toRangeFilter(which: ReplaySelector): Filter<DeliveryDocument> {
  return 'rids' in which
    ? { _id: { $in: [...which.rids] } }
    : { createdAt: { $gte: which.from, $lt: which.to } };
}

/** The write of the end of an attempt. */
export function settleUpdate(
  outcome: DeliveryOutcome,
  now: Date,
): UpdateOneModel<DeliveryDocument> {
  const { rid, log, kind, dueAt, expiresAt } = outcome;
  const again = kind === 'retry' || kind === 'release';
  return {
    filter: { _id: rid },
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
