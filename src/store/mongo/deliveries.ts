import type { AnyBulkWriteOperation, Filter } from 'mongodb';
import type { Delivery, DeliverySummary } from '../../domain/delivery.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { tallyDelivery } from '../../domain/tally.ts';
import { MAX_LOGGED_ATTEMPTS } from '../rules.ts';
import type { DeliveryOutcome, DeliveryStore, Lease } from '../store.ts';
import type { Collections, DeliveryDocument } from './collections.ts';
import { createDelta } from './counts.ts';
import { countDeliveries, readRecounts } from './delivery-counts.ts';
import { currentLease, wakeNow } from './lease.ts';
import type { Ledger } from './ledger.ts';
import { toRecord } from './records.ts';

/** Results on their way to callback URLs. */
export function createDeliveries(collections: Collections, ledger: Ledger): DeliveryStore {
  async function claimNow(
    lease: Lease,
    limit: number,
    maxBytes: number,
    now: Date,
  ): Promise<Delivery[]> {
    const { crawlerId, epoch } = lease;
    const crawler = await collections.crawlers.findOne(currentLease(lease, now), {
      projection: { pausedByMonitor: 1 },
    });
    if (crawler === null || crawler.pausedByMonitor) return [];
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
    const writeId = ledger.newWriteId();
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

  async function settleOwn(
    crawlerId: string,
    outcomes: readonly DeliveryOutcome[],
    now: Date,
  ): Promise<Set<DeliveryOutcome>> {
    const writeId = ledger.newWriteId();
    const read = await readRecounts(collections, crawlerId);
    const writes = outcomes.map((each) => updateFor(each, now, writeId));
    const { matchedCount } = await collections.deliveries.bulkWrite(writes, { ordered: false });
    let won = new Set(outcomes);
    if (matchedCount !== outcomes.length) {
      const rids = outcomes.map((each) => each.rid);
      const marked = await collections.deliveries
        .find({ _id: { $in: rids }, mark: writeId }, { projection: { _id: 1 } })
        .toArray();
      const moved = new Set(marked.map((each) => each._id));
      won = new Set(outcomes.filter((each) => moved.has(each.rid)));
    }
    const delta = createDelta(now);
    for (const outcome of won) {
      const { kind } = outcome;
      delta.addTally(tallyDelivery(outcome));
      if (kind === 'delivered' || kind === 'failed') delta.add('deliveriesPending', -1);
    }
    await countDeliveries(collections, crawlerId, { delta, read, now });
    return won;
  }

  return {
    claim: (lease, limit, maxBytes, now) =>
      ledger.runExclusive(lease.crawlerId, () => claimNow(lease, limit, maxBytes, now)),

    async settle(outcomes, now) {
      const crawlerIds = [...new Set(outcomes.map((each) => each.crawlerId))];
      const wins = await Promise.all(
        crawlerIds.map((crawlerId) => {
          const own = outcomes.filter((each) => each.crawlerId === crawlerId);
          return ledger.runExclusive(crawlerId, () => settleOwn(crawlerId, own, now));
        }),
      );
      return outcomes.map((each) => (wins.some((won) => won.has(each)) ? 'won' : 'lost'));
    },

    async get(crawlerId, rid): Promise<DeliverySummary | undefined> {
      const document = await collections.deliveries.findOne(
        { _id: rid, crawlerId, state: { $ne: 'staged' } },
        { projection: { body: 0 } },
      );
      if (document === null) return undefined;
      const pending = document.state === 'due' || document.state === 'sending';
      return {
        rid,
        url: document.url,
        cbStatus: document.cbStatus,
        originalStatus: document.originalStatus,
        state: pending ? 'pending' : (document.state as 'delivered' | 'failed'),
        createdAt: document.createdAt,
        nextAttemptAt: pending ? document.due : undefined,
        attempts: document.attempts,
      };
    },

    countReplayable: (crawlerId, which, limit) =>
      collections.deliveries.countDocuments(
        { crawlerId, ...toRangeFilter(which), state: { $in: ['due', 'delivered', 'failed'] } },
        { limit },
      ),

    replay: (crawlerId, which, now) =>
      ledger.runExclusive(crawlerId, async () => {
        const range = toRangeFilter(which);
        const waiting = await collections.deliveries.updateMany(
          { crawlerId, ...range, state: 'due' },
          { $min: { due: now } },
        );
        const read = await readRecounts(collections, crawlerId);
        const done = await collections.deliveries.updateMany(
          { crawlerId, ...range, state: { $in: ['delivered', 'failed'] } },
          { $set: { state: 'due', due: now } },
        );
        if (done.modifiedCount > 0) {
          const delta = createDelta(now);
          delta.add('deliveriesPending', done.modifiedCount);
          await countDeliveries(collections, crawlerId, { delta, read, now });
        }
        const found = waiting.matchedCount + done.modifiedCount;
        if (found > 0) await wakeNow(collections, crawlerId, now, 'delivery');
        return found;
      }),
  };
}

function toRangeFilter(which: Parameters<DeliveryStore['replay']>[1]): Filter<DeliveryDocument> {
  return 'rid' in which ? { _id: which.rid } : { createdAt: { $gte: which.from, $lt: which.to } };
}

function updateFor(
  outcome: DeliveryOutcome,
  now: Date,
  writeId: string,
): AnyBulkWriteOperation<DeliveryDocument> {
  const { rid, crawlerId, attempt, log, kind, dueAt, expiresAt } = outcome;
  const again = kind === 'retry' || kind === 'release';
  return {
    updateOne: {
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
  };
}
