import { toWall } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { QueuedJob } from '../../domain/job.ts';
import { chargedBytes } from '../../domain/quotas.ts';
import type { CrawlRecord } from '../../domain/result.ts';
import type { JobOutcome, ResultSelection, Verdict } from '../store.ts';
import { type Counts, createCounts } from './counts.ts';
import { rememberedPurgeCount, wakeBy } from './lease.ts';
import { type PlacedRecord, placedBytes, placePage } from './pages.ts';
import { takeResultNumbers } from './result-order.ts';
import { insertRow, type Sql, type SqlRow, toMs, toOptionalText } from './sql.ts';
import { freeKey } from './unique-keys.ts';

/** Ends jobs outside of a run; see `QueueStore.finish`. */
export function finish(sql: Sql, outcomes: readonly JobOutcome[], now: Date): Verdict[] {
  const counts = createCounts();
  const verdicts = endJobs({ sql, now, counts, epoch: undefined }, outcomes);
  counts.write(sql, now);
  return verdicts;
}

/** What the outcomes of one call share. */
export interface Finishing {
  readonly sql: Sql;
  readonly now: Date;
  readonly counts: Counts;
  /** The epoch of the caller's lease; undefined when it has none, so that it holds no deliveries. */
  readonly epoch: number | undefined;
}

/** Ends jobs; the caller writes the counts. */
export function endJobs(finishing: Finishing, outcomes: readonly JobOutcome[]): Verdict[] {
  const { sql } = finishing;
  const purgesOf = rememberedPurgeCount(sql);
  const stored = outcomes.filter(({ kind }) => kind === 'stored').length;
  let seq = stored === 0 ? 0 : takeResultNumbers(sql, stored);
  return outcomes.map((outcome) => {
    const purges = purgesOf(outcome.crawlerId);
    return purges === undefined ? 'lost' : endJob(finishing, outcome, purges, () => seq++);
  });
}

const REMOVE = 'DELETE FROM jobs WHERE rid = ?';

/** A job as its end finds it. */
type EndingJob = NonNullable<ReturnType<typeof readEnding>>;

const ENDING = 'account_id, state, retry, gen, size, unique_key, batch_id';
const AS_NAMED = `rid = ? AND crawler_id = ? AND
  CASE state WHEN 'running' THEN attempt = ? ELSE attempt = ? AND gen = ? END
  AND state = coalesce(?, state)`;

/** Finds the job, in the state and attempt that the outcome names. */
function readEnding(
  { sql }: Finishing,
  { rid, crawlerId, attempt, timedOut, startedAt }: JobOutcome,
  purges: number,
) {
  const row = sql.get(
    `SELECT ${ENDING} FROM jobs WHERE ${AS_NAMED}`,
    rid,
    crawlerId,
    timedOut === true ? null : attempt,
    timedOut === true ? attempt : startedAt === undefined ? null : attempt - 1,
    purges,
    timedOut === true ? 'waiting' : null,
  );
  if (row === undefined) return undefined;
  return {
    accountId: String(row.account_id),
    state: row.state as QueuedJob['state'],
    retry: Number(row.retry),
    gen: Number(row.gen),
    size: Number(row.size),
    uniqueKey: row.unique_key,
    batchId: toOptionalText(row.batch_id),
  };
}

/** Ends a job; `nextSeq` takes the number of its result. */
function endJob(
  finishing: Finishing,
  outcome: JobOutcome,
  purges: number,
  nextSeq: () => number,
): Verdict {
  const { sql, now, counts, epoch } = finishing;
  const { crawlerId } = outcome;
  const job = readEnding(finishing, outcome, purges);
  if (job === undefined) return 'lost';
  const { proxyBytes = 0 } = outcome;
  const changes = counts.of(crawlerId);
  if (proxyBytes > 0) changes.addDay('proxyBytes', proxyBytes);
  if (outcome.kind === 'retry' || outcome.kind === 'release') {
    goBack(finishing, outcome, job, purges);
    return 'won';
  }
  sql.run(REMOVE, outcome.rid);
  freeKey(sql, crawlerId, { rid: outcome.rid, key: job.uniqueKey }, 'ended');
  const { accountId, batchId } = job;
  changes.addResult(job, outcome, chargedBytes(placedBytes(outcome.record)));
  if (outcome.kind === 'stored') {
    insertResult(sql, {
      scope: { accountId, tokenType: outcome.tokenType, crawlerId, ...defined({ batchId }) },
      record: outcome.record,
      seq: nextSeq(),
      storedAt: toWall(sql, now),
      expiresAt: outcome.expiresAt,
    });
    return 'won';
  }
  insertDelivery(sql, { ...outcome, batchId }, now, outcome.held ? epoch : undefined);
  return 'won';
}

/** Returns a job to the queue; one that was running when the queue was purged ends. */
function goBack(
  { sql, now, counts }: Finishing,
  outcome: Extract<JobOutcome, { kind: 'retry' | 'release' }>,
  job: EndingJob,
  purges: number,
): void {
  const { rid, crawlerId, attempt, startedAt } = outcome;
  const changes = counts.of(crawlerId);
  const more = outcome.kind === 'retry' ? 1 : 0;
  if (outcome.kind === 'retry') changes.addRetry(outcome);
  if (job.gen < purges) {
    sql.run(REMOVE, rid);
    changes.remove(job, 'purged');
    return;
  }
  const retry = job.retry + more;
  const state = retry > 0 ? 'retrying' : 'waiting';
  const dueAt = (outcome.dueAt ?? now).getTime();
  sql.run(
    `UPDATE jobs SET state = ?, retry = ?, attempt = ?, due_at = ?, crashes = crashes + ?,
      epoch = NULL, last_failure = coalesce(?, last_failure), climbed = iif(?, climbed, ?),
      tries = coalesce(?, tries),
      first_tried_at = ${retry > 0 ? 'coalesce(first_tried_at, ?)' : '?'} WHERE rid = ?`,
    state,
    retry,
    attempt,
    dueAt,
    outcome.kind === 'retry' && outcome.crashed === true ? 1 : 0,
    outcome.kind === 'retry' ? (outcome.failure ?? null) : null,
    outcome.kind === 'release' ? 1 : 0,
    outcome.kind === 'retry' ? (outcome.climbed ?? null) : null,
    outcome.kind === 'retry' ? (outcome.tries ?? null) : null,
    retry > 0 ? toMs(startedAt) : null,
    rid,
  );
  changes.move(job.size, job.state, state);
}

/** A result to be stored. */
interface NewResult {
  readonly scope: ResultSelection;
  readonly record: CrawlRecord;
  /** Its number, see `takeResultNumbers`. */
  readonly seq: number;
  readonly storedAt: Date;
  readonly expiresAt: Date;
}

/** Stores a record; the caller counts its bytes. */
export function insertResult(
  sql: Sql,
  { scope, record, seq, storedAt, expiresAt }: NewResult,
): void {
  insertRow(sql, 'results', {
    ...insertRecord(sql, record),
    coding: record.coding,
    page_key: record.pageKey ?? null,
    account_id: scope.accountId,
    token_type: scope.tokenType,
    crawler_id: scope.crawlerId ?? null,
    batch_id: scope.batchId ?? null,
    seq,
    stored_at: storedAt.getTime(),
    expires_at: expiresAt.getTime(),
  });
}

/** Places the page of a record, and returns the columns that results and deliveries share. */
function insertRecord(sql: Sql, record: PlacedRecord): SqlRow {
  return {
    rid: record.rid,
    page_id: placePage(sql, record),
    url: record.url,
    pushed_url: record.pushedUrl,
    cb_status: record.cbStatus,
    original_status: record.originalStatus,
    content_type: record.contentType,
    extras: JSON.stringify(record.details),
    size: placedBytes(record),
    request: record.request ?? null,
  };
}

/** What a delivery is made of. */
type NewDelivery = Pick<
  Extract<JobOutcome, { kind: 'delivery' }>,
  'record' | 'crawlerId' | 'callbackHeaders' | 'expiresAt' | 'traceparent'
> & { readonly batchId?: string | undefined };

/** Inserts a delivery; the caller counts it. It is due, unless the lease `epoch` holds it. */
export function insertDelivery(
  sql: Sql,
  outcome: NewDelivery,
  now: Date,
  epoch: number | undefined,
): void {
  const { record, crawlerId } = outcome;
  const held = epoch !== undefined;
  insertRow(sql, 'deliveries', {
    ...insertRecord(sql, record),
    crawler_id: crawlerId,
    state: held ? 'sending' : 'due',
    due_at: now.getTime(),
    attempt: held ? 1 : 0,
    epoch: epoch ?? null,
    created_at: toWall(sql, now).getTime(),
    expires_at: outcome.expiresAt.getTime(),
    callback_headers: JSON.stringify(outcome.callbackHeaders),
    traceparent: outcome.traceparent ?? null,
    batch_id: outcome.batchId ?? null,
  });
  if (!held) wakeBy(sql, crawlerId, now, 'delivery');
}
