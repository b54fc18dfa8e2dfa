import { toWall, type WallClock } from '../../domain/clock.ts';
import type { Job } from '../../domain/job.ts';
import { chargedJobBytes } from '../../domain/quotas.ts';
import type { PushOutcome, PushReceipt, PushRequest } from '../store.ts';
import { type SqlValue, toMs } from './sql.ts';

/**
 * A push as it crosses to the thread of the database, where each step is one at a time: its jobs are
 * rows already.
 */
export interface PushRows extends Omit<PushRequest, 'jobs'> {
  readonly rows: readonly JobRow[];
  /** Until when the unique keys of the rows hold; absent if they have none. */
  readonly untils?: readonly (number | null)[];
}

/** The result of {@link PushRows}; without `outcomes` all were accepted. */
export type RowsReceipt = Omit<PushReceipt, 'outcomes'> & Partial<Pick<PushReceipt, 'outcomes'>>;

/** The values of {@link COLUMNS}, without those at the end that are null. */
export type JobRow = readonly SqlValue[];

/** The columns that a push fills with values of a job. Those that few jobs have come last. */
export const COLUMNS = [
  'rid',
  'size',
  'priority',
  'host',
  'url',
  'method',
  'parameters',
  'callback_headers',
  'created_at',
  'due_at',
  'batch',
  'unique_key',
  'traceparent',
  'queue_deadline',
  'metadata',
  'body',
  'content_type',
  'not_before',
  'again_of',
] as const;

/** Where a column is in a row. */
export const AT = Object.fromEntries(COLUMNS.map((column, at) => [column, at])) as Readonly<
  Record<(typeof COLUMNS)[number], number>
>;

/** Makes rows of the jobs. */
export function toRows({ jobs, ...request }: PushRequest, clock: WallClock): PushRows {
  const rows = jobs.map((job) => toRow(job, clock));
  if (jobs.every(({ unique }) => unique === undefined)) return { ...request, rows };
  return { ...request, rows, untils: jobs.map(({ unique }) => toMs(unique?.until)) };
}

function toRow(job: Job, clock: WallClock): JobRow {
  const values: Readonly<Record<(typeof COLUMNS)[number], SqlValue | undefined>> = {
    rid: job.rid,
    size: chargedJobBytes(job),
    priority: job.priority,
    host: job.host,
    url: job.url,
    method: job.method,
    parameters: JSON.stringify(job.parameters),
    callback_headers: JSON.stringify(job.callbackHeaders),
    created_at: toWall(clock, job.createdAt).getTime(),
    due_at: (job.notBefore ?? job.createdAt).getTime(),
    batch: job.batch,
    unique_key: job.unique?.key,
    traceparent: job.traceparent,
    queue_deadline: toMs(job.queueDeadline),
    metadata: job.metadata,
    body: job.body,
    content_type: job.contentType,
    not_before: toMs(job.notBefore),
    again_of: job.againOf,
  };
  const row = COLUMNS.map((column) => values[column] ?? null);
  row.length = row.findLastIndex((value) => value !== null) + 1;
  return row;
}

/** The receipt of a push. */
export function toReceipt(receipt: RowsReceipt, { jobs }: PushRequest): PushReceipt {
  const outcomes = receipt.outcomes ?? jobs.map(({ rid }): PushOutcome => ({ rid }));
  return { ...receipt, outcomes };
}
