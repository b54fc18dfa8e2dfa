import type { Filter } from 'mongodb';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { FIELDS_DROPPED_AT_END } from './job-document.ts';

/** A batch of writes of one process. Batches of a process are numbered in their order. */
export interface BatchId {
  readonly processId: string;
  readonly batchNo: number;
}

/** A batch as tombstones name it. */
export function batchFields({ processId, batchNo }: BatchId) {
  return { by: processId, seq: batchNo };
}

/** The batch that a tombstone names. */
export function toBatchId({ by = '', seq = 0 }: Pick<JobDocument, 'by' | 'seq'>): BatchId {
  return { processId: by, batchNo: seq };
}

/** A batch as `CrawlerDocument.fenced` names it. */
export function batchLabel({ processId, batchNo }: BatchId): string {
  return `${processId}.${batchNo}`;
}

/** The batch in whose write a job got its mark; undefined for marks of other writes. */
export function toMarkedBatch(mark = ''): BatchId | undefined {
  const [processId = '', batchNo, index] = mark.split('.');
  return index === undefined ? undefined : { processId, batchNo: Number(batchNo) };
}

/** The field of a crawler that has the number of the process's last applied batch. */
export function appliedPath({ processId }: Pick<BatchId, 'processId'>): `applied.${string}` {
  return `applied.${processId}`;
}

/** Matches a crawler whose counters do not contain the batch, and that still accepts it. */
export function acceptsBatch(batch: BatchId): Filter<CrawlerDocument> {
  const path = appliedPath(batch);
  return {
    $or: [{ [path]: { $lt: batch.batchNo } }, { [path]: { $exists: false } }],
    fenced: { $ne: batchLabel(batch) },
  };
}

/** Whether the batch was taken from its process before it was applied. */
export function isFenced(
  { fenced = [] }: Pick<CrawlerDocument, 'fenced'>,
  batch: BatchId,
): boolean {
  return fenced.includes(batchLabel(batch));
}

/**
 * Whether the counters do not contain the batch's tombstones: it is not applied yet, or was fenced
 * before it could be.
 */
export function isUnapplied(
  crawler: Pick<CrawlerDocument, 'applied' | 'fenced'>,
  batch: BatchId,
): boolean {
  return batch.batchNo > (crawler.applied[batch.processId] ?? 0) || isFenced(crawler, batch);
}

/** The update that turns a job into a tombstone, which remembers the state the job was in. */
export function tombstoneUpdate(end: 'deleted' | 'purged', endedAt: Date, batch: BatchId) {
  return [
    { $set: { from: '$state', state: 'ended', end, endedAt, ...batchFields(batch) } },
    { $unset: Object.keys(FIELDS_DROPPED_AT_END) },
  ];
}

// Naming `endedAt` makes the server use the index of tombstones.
const ENDED = { state: 'ended', endedAt: { $gte: new Date(0) } } as const;

/** Matches the tombstones of a crawler; of one process's batches when `processId` is given. */
export function tombstonesFilter(crawlerId: string, processId?: string): Filter<JobDocument> {
  return { ...ENDED, crawlerId, ...(processId === undefined ? {} : { by: processId }) };
}

/** All tombstones of a crawler, in an order that stays the same. */
export function findTombstones(collections: Collections, crawlerId: string) {
  return collections.jobs.find(tombstonesFilter(crawlerId)).sort({ endedAt: 1, _id: 1 }).toArray();
}
