import type { ClientSession } from 'mongodb';
import { BATCH_KEPT_MS, type BatchEnds, MAX_BATCHES } from '../../domain/batch.ts';
import { toWall } from '../../domain/clock.ts';
import type { Job } from '../../domain/job.ts';
import { createRid } from '../../domain/rid.ts';
import type { PushOutcome } from '../store.ts';
import type { BatchDocument, Collections } from './collections.ts';
import { Fenced, type Lane } from './lanes.ts';
import { isInserted } from './mongo-errors.ts';

type Refusal = Extract<PushOutcome, { refused: string }>['refused'];

/** The batches of the jobs of a push. */
export interface EnteredBatches {
  /** Why batches refuse some of the jobs. */
  readonly refused: ReadonlyMap<Job, Refusal>;
  batchIdOf(job: Job): string | undefined;
  /** Counts the jobs within their transaction. Throws {@link Fenced} if a batch was closed since. */
  count(jobs: readonly Job[], session: ClientSession): Promise<void>;
}

/**
 * Finds or makes the batches that jobs name; reads nothing if none names one. The part of the lane is
 * there before the batch is read: a process that closes it later finds the part, and fences it.
 */
export async function enterBatches(
  collections: Collections,
  lane: Lane,
  jobs: readonly Job[],
  now: Date,
): Promise<EnteredBatches> {
  const { batches, batchParts, time } = collections;
  const names = [...new Set(jobs.flatMap(({ batch = [] }) => batch))];
  const { crawlerId } = lane;
  const partId = (batchId: string): string => `${batchId}/${lane.id}`;

  async function open(name: string): Promise<BatchDocument | Refusal> {
    const found = await batches.findOne({ crawlerId, name });
    if (found === null) {
      const made = await create(name);
      return made ?? open(name);
    }
    if (found.closedAt !== undefined) return 'batch_closed';
    const { modifiedCount, upsertedCount } = await batchParts.updateOne(
      { _id: partId(found._id) },
      { $setOnInsert: { batchId: found._id, crawlerId } },
      { upsert: true },
    );
    if (modifiedCount + upsertedCount === 0) return found;
    const again = await batches.findOne({ _id: found._id });
    return again === null || again.closedAt !== undefined ? 'batch_closed' : again;
  }

  async function create(name: string): Promise<BatchDocument | Refusal | undefined> {
    const count = await batches.countDocuments({ crawlerId }, { limit: MAX_BATCHES });
    if (count === MAX_BATCHES) return 'too_many_batches';
    const createdAt = toWall(time, now);
    const _id = createRid(createdAt);
    const expiresAt = new Date(now.getTime() + BATCH_KEPT_MS);
    // Another push may be faster.
    await isInserted(batches.insertOne({ _id, crawlerId, name, createdAt, expiresAt }));
    return undefined;
  }

  const opened = new Map<string, BatchDocument | Refusal>();
  for (const name of names) opened.set(name, await open(name));
  const refused = new Map<Job, Refusal>();
  for (const job of jobs) {
    const batch = opened.get(job.batch ?? '');
    if (typeof batch === 'string') refused.set(job, batch);
  }
  const batchOf = ({ batch = '' }: Job): BatchDocument | undefined => {
    const found = opened.get(batch);
    return typeof found === 'string' ? undefined : found;
  };
  return {
    refused,
    batchIdOf: (job) => batchOf(job)?._id,
    async count(accepted, session) {
      const lastPushedAt = toWall(time, now);
      for (const [batch, own] of Map.groupBy(accepted, batchOf)) {
        if (batch === undefined) continue;
        const { matchedCount } = await batchParts.updateOne(
          { _id: partId(batch._id), closed: { $exists: false } },
          { $inc: { accepted: own.length }, $set: { lastPushedAt } },
          { session },
        );
        if (matchedCount === 0) throw new Fenced();
      }
    },
  };
}

/** Counts the ends of crawls in their batches, within their transaction. */
export async function countBatchEnds(
  { batchParts }: Collections,
  { id, crawlerId }: Lane,
  { ends, keptAt }: { readonly ends: ReadonlyMap<string, BatchEnds>; readonly keptAt: Date },
  session: ClientSession,
): Promise<void> {
  for (const [batchId, { completed, failures }] of ends) {
    const failed = Object.entries(failures).map(
      ([reason, n]) => [`failures.${reason}`, n] as const,
    );
    await batchParts.updateOne(
      { _id: `${batchId}/${id}` },
      {
        $setOnInsert: { batchId, crawlerId },
        $set: { lastEndedAt: keptAt },
        $inc: { completed, ...Object.fromEntries(failed) },
      },
      { upsert: true, session },
    );
  }
}
