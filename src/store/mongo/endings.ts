import type { Document, UpdateOneModel } from 'mongodb';
import { defined } from '../../domain/defined.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import { chargedRecordBytes } from '../../domain/quotas.ts';
import { createCountChanges } from '../count-changes.ts';
import { isHeld } from '../held-deliveries.ts';
import type { JobOutcome, StartedJob } from '../store.ts';
import type { DeliveryDocument, JobDocument, ResultDocument } from './collections.ts';
import { orderOf, untriedUpdate } from './job-document.ts';
import type { JobFacts } from './job-facts.ts';
import { deliveryDocument, resultDocument } from './records.ts';

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

/** Jobs that leave the queue, or come back to it, and what becomes of them. */
export type JobWrites = ReturnType<typeof jobWrites>;

/** What is to be written of jobs in the state that is known of them. The others are lost. */
export function jobWrites(
  writing: JobWriting,
  facts: ReadonlyMap<string, JobFacts>,
  outcomes: readonly JobOutcome[],
  starts: readonly StartedJob[],
) {
  const { crawlerId, purges, epoch, now } = writing;
  /** The jobs that are written. */
  const taken = new Set<string>();
  /** Jobs that are removed, by what must be the same of those of one statement. */
  const removed = new Map<string, { readonly filter: Document; readonly rids: string[] }>();
  const updates: UpdateOneModel<JobDocument>[] = [];
  const results: ResultDocument[] = [];
  const deliveries: DeliveryDocument[] = [];
  const ended = new Set<JobOutcome>();
  const started: { readonly start: StartedJob; readonly facts: JobFacts }[] = [];
  /** The starts that an earlier try of the turn has written. */
  const repeated: StartedJob[] = [];
  const changes = createCountChanges();
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
    const { size, state, attempt } = job;
    const isPurged = job.gen !== purges;
    if (isEnd(outcome) || isPurged) {
      const filter = { attempt, ...inState(job), ...(outcome.timedOut ? { expires: true } : {}) };
      const kind = JSON.stringify(filter);
      getOrInsert(removed, kind, () => ({ filter, rids: [] })).rids.push(rid);
      gone.push({ rid, uniqueKey: job.uniqueKey });
    } else updates.push(returnUpdate(outcome, job, now));
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
      if (job.attempt === attempt && job.epoch === epoch) repeated.push(start);
      continue;
    }
    if (job.attempt !== attempt - 1 || job.gen !== purges) continue;
    taken.add(rid);
    started.push({ start, facts: job });
    updates.push(startUpdate(start, job, epoch));
    const { size, state } = job;
    changes.move(size, state, 'running');
  }

  return {
    removed: [...removed.values()],
    updates,
    results,
    deliveries,
    ended,
    started,
    repeated,
    gone,
    changes,
  };
}

/** Whether the job is in the attempt, and the state, that its end names. */
function isExpected(outcome: JobOutcome, { attempt, state }: JobFacts): boolean {
  if (outcome.timedOut === true) return state !== 'running' && attempt === outcome.attempt;
  if (state === 'running') return attempt === outcome.attempt;
  return outcome.startedAt !== undefined && attempt === outcome.attempt - 1;
}

/** Names no field of a partial index, so that the server goes by the `_id`s. */
function inState({ state }: Pick<JobFacts, 'state'>): Document {
  return { state: state === 'running' ? state : { $in: ['waiting', 'retrying'] } };
}

function startUpdate(
  { rid, attempt, startedAt }: StartedJob,
  facts: JobFacts,
  epoch: number,
): UpdateOneModel<JobDocument> {
  const first = facts.retry === 0 ? { firstTriedAt: startedAt } : {};
  return {
    filter: { _id: rid, ...inState(facts), attempt: facts.attempt },
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
  const filter = { _id: rid, ...inState(facts), attempt: facts.attempt };
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

/** A write that found fewer documents than it names. */
export class Mismatch extends Error {}

/** Throws {@link Mismatch} unless as many documents were found as were named. */
export function expectAll(found: number, named: number): void {
  if (found !== named) throw new Mismatch();
}
