import { BATCH_KEPT_MS, type Batch } from '../../domain/batch.ts';
import { toWall } from '../../domain/clock.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { chargedRecordBytes } from '../../domain/quotas.ts';
import type { BatchStore } from '../store.ts';
import type { BatchDocument, BatchPartDocument, Collections } from './collections.ts';
import { exists } from './find-ids.ts';
import type { Lanes } from './lanes.ts';
import { wakeNow } from './lease.ts';
import { readPurges } from './queue-reads.ts';
import { removeJobs } from './queue-removals.ts';
import { deliveryDocument } from './records.ts';

interface Group {
  readonly _id: string;
  readonly n: number;
  readonly later: number;
}

/** Batches and what they count: the sum of the parts of all lanes, and the jobs by the index. */
export function createBatches(collections: Collections, lanes: Lanes): BatchStore {
  const { batches, batchParts, jobs, deliveries, time } = collections;

  async function toBatch(document: BatchDocument, now: Date): Promise<Batch> {
    const { _id: batchId, crawlerId, name, createdAt, closedAt, completedAt } = document;
    const crawler = await readPurges(collections, crawlerId);
    const isLive = { $or: [{ state: 'running' as const }, { gen: crawler?.purges ?? -1 }] };
    const later = { $sum: { $cond: [{ $gt: ['$notBefore', now] }, 1, 0] } };
    // Of one moment, or a crawl that ends in between would be missing or counted twice.
    const { live, parts } = await lanes.transactions.run(async (session) => ({
      live: await jobs
        .aggregate<Group>(
          [
            { $match: { batchId, ...isLive } },
            { $group: { _id: '$state', n: { $sum: 1 }, later } },
          ],
          { session },
        )
        .toArray(),
      parts: await batchParts.find({ batchId }, { session }).toArray(),
    }));
    const inState = (state: string) => live.find(({ _id }) => _id === state);
    return {
      batchId,
      crawlerId,
      name,
      createdAt,
      lastPushedAt: latest(parts, 'lastPushedAt') ?? createdAt,
      lastEndedAt: latest(parts, 'lastEndedAt'),
      closedAt,
      completedAt,
      accepted: sum(parts, ({ accepted }) => accepted),
      waiting: inState('waiting')?.n ?? 0,
      scheduled: inState('waiting')?.later ?? 0,
      retrying: inState('retrying')?.n ?? 0,
      running: inState('running')?.n ?? 0,
      completed: sum(parts, ({ completed }) => completed),
      failures: sumFailures(parts),
    };
  }

  /** Pushes that have begun see from now on that it is closed. */
  async function fence({ _id: batchId, crawlerId }: BatchDocument): Promise<void> {
    await lanes.unblocked(crawlerId, () =>
      batchParts.updateMany({ batchId }, { $set: { closed: true } }),
    );
    await batches.updateOne({ _id: batchId }, { $set: { fenced: true } });
  }

  return {
    async get(crawlerId, name, now) {
      const document = await batches.findOne({ crawlerId, name });
      return document === null ? undefined : toBatch(document, now);
    },

    async list(crawlerId, { limit, cursor }, now) {
      const found = await batches
        .find({ crawlerId, ...(cursor === undefined ? {} : { _id: { $lt: cursor } }) })
        .sort({ _id: -1 })
        .limit(limit)
        .toArray();
      const rows: Batch[] = [];
      for (const document of found) rows.push(await toBatch(document, now));
      return { rows, cursor: found.length < limit ? undefined : found.at(-1)?._id };
    },

    async close(crawlerId, name, now) {
      await batches.updateOne(
        { crawlerId, name, closedAt: { $exists: false } },
        { $set: { closedAt: toWall(time, now) } },
      );
      const document = await batches.findOne({ crawlerId, name });
      if (document === null) return undefined;
      if (document.fenced !== true) await fence(document);
      return toBatch(document, now);
    },

    async cancel({ batchId, crawlerId }, limit, now) {
      const state = { $in: ['waiting', 'retrying'] as const };
      const which = (gen: number) => ({ batchId, state, gen });
      const removal = { crawlerId, which, limit, end: 'purged', now } as const;
      return (await removeJobs(collections, lanes, removal)).length;
    },

    async done(limit, now) {
      const found: Batch[] = [];
      const closed = batches
        .find({ closedAt: { $exists: true }, completedAt: { $exists: false } })
        .sort({ closedAt: 1 });
      // Leaving the loop closes the cursor.
      for await (const document of closed) {
        if (document.fenced !== true) await fence(document);
        if (await exists(jobs, { batchId: document._id })) continue;
        found.push(await toBatch(document, now));
        if (found.length === limit) break;
      }
      return found;
    },

    async complete({ batchId, crawlerId }, event, now) {
      const completedAt = toWall(time, now);
      const expiresAt = new Date(now.getTime() + BATCH_KEPT_MS);
      const completed = await lanes.runExclusive(crawlerId, () =>
        lanes.change(crawlerId, now, async (session, changes) => {
          if (await exists(jobs, { batchId }, { session })) return false;
          const { modifiedCount } = await batches.updateOne(
            { _id: batchId, fenced: true, completedAt: { $exists: false } },
            { $set: { completedAt, expiresAt } },
            { session },
          );
          if (modifiedCount === 0 || event === undefined) return modifiedCount > 0;
          const document = deliveryDocument({
            ...event,
            crawlerId,
            batchId,
            callbackHeaders: [],
            due: now,
            keptAt: completedAt,
            epoch: undefined,
          });
          await deliveries.insertOne(document, { session });
          changes.add('deliveriesPending', 1);
          changes.addStored(chargedRecordBytes(event.record));
          await wakeNow(collections, crawlerId, now, 'delivery', session);
          return true;
        }),
      );
      return completed ?? false;
    },
  };
}

/** Removes batches past their retention, and closes open ones that were not pushed to for as long. */
export async function expireBatches(
  { batches, batchParts, time }: Collections,
  now: Date,
  batch: number,
): Promise<number> {
  const old = await batches
    .find({ expiresAt: { $lte: now } })
    .limit(batch)
    .toArray();
  for (const { _id, expiresAt, closedAt, completedAt } of old) {
    if (completedAt !== undefined) {
      const { deletedCount } = await batches.deleteOne({ _id, expiresAt });
      if (deletedCount > 0) await batchParts.deleteMany({ batchId: _id });
      continue;
    }
    const shown = toWall(time, now);
    const since = new Date(shown.getTime() - BATCH_KEPT_MS);
    const isPushed = await exists(batchParts, { batchId: _id, lastPushedAt: { $gt: since } });
    const isOver = !isPushed && closedAt === undefined;
    const later = new Date(now.getTime() + DAY_MS);
    await batches.updateOne(
      { _id, expiresAt },
      { $set: { expiresAt: later, ...(isOver ? { closedAt: shown } : {}) } },
    );
  }
  return old.length;
}

function sum(
  parts: readonly BatchPartDocument[],
  of: (part: BatchPartDocument) => number | undefined,
): number {
  return parts.reduce((all, part) => all + (of(part) ?? 0), 0);
}

function sumFailures(parts: readonly BatchPartDocument[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const { failures = {} } of parts) {
    for (const [reason, n] of Object.entries(failures)) all[reason] = (all[reason] ?? 0) + n;
  }
  return all;
}

function latest(
  parts: readonly BatchPartDocument[],
  field: 'lastPushedAt' | 'lastEndedAt',
): Date | undefined {
  const moments = parts.flatMap((part) => part[field]?.getTime() ?? []);
  return moments.length === 0 ? undefined : new Date(Math.max(...moments));
}
