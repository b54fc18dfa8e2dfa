import type { UpdateOneModel } from 'mongodb';
import { defined } from '../../domain/defined.ts';
import { chargedRecordBytes } from '../../domain/quotas.ts';
import type { CountChanges } from '../count-changes.ts';
import { isHeld } from '../held-deliveries.ts';
import type { JobOutcome, StartedJob } from '../store.ts';
import type { DeliveryDocument, JobDocument, ResultDocument } from './collections.ts';
import { orderOf, untriedUpdate } from './job-document.ts';
import { deliveryDocument, resultDocument } from './records.ts';

/** The fields of a job that a write on it has to know. */
export const JOB_FACTS = {
  attempt: 1,
  retry: 1,
  gen: 1,
  size: 1,
  state: 1,
  epoch: 1,
  priority: 1,
  uniqueKey: 1,
  batchId: 1,
  expires: 1,
} as const;

/** What a write on a job has to know of it. */
export type JobFacts = Pick<JobDocument, '_id' | keyof typeof JOB_FACTS>;

type End = Extract<JobOutcome, { kind: 'stored' | 'delivery' }>;

const isEnd = (outcome: JobOutcome): outcome is End =>
  outcome.kind === 'stored' || outcome.kind === 'delivery';

/** A crawler as the writes on its jobs know it. */
export interface JobWriting {
  readonly crawlerId: string;
  readonly accountId: string;
  readonly purges: number;
  readonly now: Date;
  /** The same moment as it is kept. */
  readonly keptAt: Date;
  /** The epoch of the writer's lease; without it nothing starts, and no delivery is held. */
  readonly epoch: number | undefined;
}

/** Crawls that have ended, and crawls that have begun. */
export interface JobWork {
  readonly ended: readonly JobOutcome[];
  readonly started: readonly StartedJob[];
}

/** Jobs that leave the queue, or come back to it, and what becomes of them. */
export type JobWrites = ReturnType<typeof jobWrites>;

/**
 * What is to be written of jobs in the state that their facts have, with what of it is counted in
 * `changes`. The others are lost.
 */
export function jobWrites(
  writing: JobWriting,
  facts: ReadonlyMap<string, JobFacts>,
  { ended: outcomes, started: starts }: JobWork,
  changes: CountChanges,
) {
  const { crawlerId, purges, epoch, now } = writing;
  /** The jobs that are written. */
  const taken = new Set<string>();
  const updates: UpdateOneModel<JobDocument>[] = [];
  const results: ResultDocument[] = [];
  const deliveries: DeliveryDocument[] = [];
  const ended = new Set<JobOutcome>();
  /** Those that are in flight, also by an earlier try of the turn. */
  const started = new Set<StartedJob>();
  /** The jobs that leave the queue for good. */
  const gone: { readonly rid: string; readonly uniqueKey: string | undefined }[] = [];

  for (const outcome of outcomes) {
    const { rid } = outcome;
    const job = facts.get(rid);
    if (job === undefined || taken.has(rid) || outcome.crawlerId !== crawlerId) continue;
    const isQueued = job.state !== 'running';
    if (!isExpected(outcome, job) || (isQueued && job.gen !== purges)) continue;
    taken.add(rid);
    ended.add(outcome);
    const { proxyBytes = 0 } = outcome;
    if (proxyBytes > 0) changes.addDay('proxyBytes', proxyBytes);
    const { size, state } = job;
    const isPurged = job.gen !== purges;
    if (isEnd(outcome) || isPurged) gone.push({ rid, uniqueKey: job.uniqueKey });
    else updates.push(returnUpdate(outcome, job, now));
    if (isEnd(outcome)) {
      const { batchId } = job;
      changes.addResult(job, outcome, chargedRecordBytes(outcome.record));
      if (outcome.kind === 'stored') results.push(toResult(outcome, writing, batchId));
      else deliveries.push(toDelivery(outcome, writing, batchId));
    } else {
      const again = outcome.kind === 'retry';
      if (again) changes.addRetry(outcome);
      if (isPurged) changes.remove(job, 'purged');
      else changes.move(size, state, again || job.retry > 0 ? 'retrying' : 'waiting');
    }
  }

  for (const start of starts) {
    const { rid, attempt } = start;
    const job = facts.get(rid);
    if (job === undefined || taken.has(rid) || epoch === undefined) continue;
    if (job.state === 'running') {
      if (job.attempt === attempt && job.epoch === epoch) started.add(start);
      continue;
    }
    if (job.attempt !== attempt - 1 || job.gen !== purges) continue;
    taken.add(rid);
    started.add(start);
    updates.push(startUpdate(start, job, epoch));
    const { size, state } = job;
    changes.move(size, state, 'running');
  }

  return { updates, results, deliveries, ended, started, gone };
}

/** Whether the job is in the attempt, and the state, that its end names. */
function isExpected(outcome: JobOutcome, { attempt, state, expires }: JobFacts): boolean {
  if (outcome.timedOut === true) return expires === true && attempt === outcome.attempt;
  if (state === 'running') return attempt === outcome.attempt;
  return outcome.startedAt !== undefined && attempt === outcome.attempt - 1;
}

function startUpdate(
  { rid, attempt, startedAt }: StartedJob,
  facts: JobFacts,
  epoch: number,
): UpdateOneModel<JobDocument> {
  const first = facts.retry === 0 ? { firstTriedAt: startedAt } : {};
  return {
    filter: { _id: rid },
    update: {
      $set: { state: 'running', attempt, epoch, ...first },
      $unset: { queued: 1, expires: 1 },
    },
  };
}

function returnUpdate(
  outcome: Extract<JobOutcome, { kind: 'retry' | 'release' }>,
  facts: JobFacts,
  now: Date,
): UpdateOneModel<JobDocument> {
  const { rid, attempt, startedAt, dueAt: due = now } = outcome;
  const filter = { _id: rid };
  if (outcome.kind === 'release') return { filter, update: untriedUpdate({ due, attempt }) };
  const { failure, climbed, tries, crashed } = outcome;
  const first = startedAt !== undefined && facts.retry === 0 ? { firstTriedAt: startedAt } : {};
  return {
    filter,
    update: {
      $set: {
        state: 'retrying',
        queued: true,
        due,
        order: orderOf(due, facts.priority),
        attempt,
        ...first,
        ...defined({ lastFailure: failure, climbed, tries }),
      },
      $inc: { retry: 1, ...(crashed === true ? { crashes: 1 } : {}) },
      $unset: { epoch: 1, expires: 1, ...(climbed === undefined ? { climbed: 1 } : {}) },
    },
  };
}

function toResult(
  { record, expiresAt, tokenType }: Extract<End, { kind: 'stored' }>,
  { accountId, crawlerId, keptAt }: JobWriting,
  batchId: string | undefined,
): ResultDocument {
  const selection = { accountId, tokenType, crawlerId };
  return resultDocument({ selection, record, keptAt, expiresAt, batchId });
}

function toDelivery(
  outcome: Extract<End, { kind: 'delivery' }>,
  { now, keptAt, epoch }: JobWriting,
  batchId: string | undefined,
): DeliveryDocument {
  return deliveryDocument({
    ...outcome,
    due: now,
    keptAt,
    epoch: isHeld(outcome) ? epoch : undefined,
    batchId,
  });
}
