import { chargedRecordBytes } from '../../domain/quotas.ts';
import type { CrawlRecord } from '../../domain/result.ts';
import { resultEnd, tallyEnd } from '../../domain/tally.ts';
import type { Verdict } from '../finish-receipt.ts';
import type { JobOutcome, Lease, ResultSelection } from '../store.ts';
import { detailsText } from '../stored-details.ts';
import { type Counts, createCounts } from './counts.ts';
import { purgeCount, wakeBy } from './lease.ts';
import { insertPage } from './pages.ts';
import { nextResultSeq } from './result-order.ts';
import { insertRow, type Sql, type SqlRow } from './sql.ts';

/**
 * Ends jobs; see `QueueStore.finish`. Returns the verdicts alone: the pages of the deliveries
 * would be copied on their way back to the thread that has them.
 */
export function finish(
  sql: Sql,
  outcomes: readonly JobOutcome[],
  now: Date,
  lease?: Lease,
): Verdict[] {
  const counts = createCounts();
  const finishing = { sql, now, counts, epoch: lease?.epoch };
  const verdicts = outcomes.map((outcome) => finishOne(finishing, outcome));
  counts.write(sql, now);
  return verdicts;
}

/** What the outcomes of one call share. */
interface Finishing {
  readonly sql: Sql;
  readonly now: Date;
  readonly counts: Counts;
  /** The epoch of the caller's lease. */
  readonly epoch: number | undefined;
}

function finishOne(finishing: Finishing, outcome: JobOutcome): Verdict {
  const { sql, now, counts, epoch } = finishing;
  const { rid, crawlerId, attempt } = outcome;
  const state = outcome.timedOut === true ? 'waiting' : 'running';
  const purges = purgeCount(sql, crawlerId);
  if (purges === undefined) return 'lost';
  const row = sql.get(
    `SELECT account_id, retry, gen, size FROM jobs
      WHERE rid = ? AND crawler_id = ? AND attempt = ? AND state = ?
      AND (gen = ? OR state = 'running')`,
    rid,
    crawlerId,
    attempt,
    state,
    purges,
  );
  if (row === undefined) return 'lost';
  const accountId = String(row.account_id);
  if (outcome.kind === 'retry' || outcome.kind === 'release') {
    goBack(finishing, outcome, row, purges);
    return 'won';
  }
  sql.run('DELETE FROM jobs WHERE rid = ?', rid);
  counts.add(crawlerId, state, -1);
  counts.addBytes(accountId, 'queued_bytes', -Number(row.size));
  counts.addBytes(accountId, 'stored_bytes', chargedRecordBytes(outcome.record));
  if (state === 'waiting') {
    counts.addQueued(accountId, -1);
    counts.add(crawlerId, 'held_bytes', -Number(row.size));
  }
  const { cbStatus } = outcome.record;
  const { billed, timedOut } = outcome;
  counts.addTally(crawlerId, tallyEnd({ end: resultEnd(cbStatus), cbStatus, billed, timedOut }));
  if (outcome.kind === 'stored') {
    insertResult(
      sql,
      { accountId, tokenType: outcome.tokenType, crawlerId },
      outcome.record,
      now,
      outcome.expiresAt,
    );
    return 'won';
  }
  counts.add(crawlerId, 'deliveries_pending', 1);
  insertDelivery(sql, outcome, now, outcome.held ? epoch : undefined);
  return 'won';
}

/** Returns a job to the queue; one that was running when the queue was purged ends. */
function goBack(
  { sql, now, counts }: Finishing,
  outcome: Extract<JobOutcome, { kind: 'retry' | 'release' }>,
  row: SqlRow,
  purges: number,
): void {
  const { rid, crawlerId } = outcome;
  const more = outcome.kind === 'retry' ? 1 : 0;
  if (more > 0) counts.addDay(crawlerId, 'retries', 1);
  counts.add(crawlerId, 'running', -1);
  if (Number(row.gen) < purges) {
    sql.run('DELETE FROM jobs WHERE rid = ?', rid);
    counts.addTally(crawlerId, tallyEnd({ end: 'purged' }));
    counts.addBytes(String(row.account_id), 'queued_bytes', -Number(row.size));
    return;
  }
  const retry = Number(row.retry) + more;
  const state = retry > 0 ? 'retrying' : 'waiting';
  const dueAt = (outcome.dueAt ?? now).getTime();
  sql.run(
    `UPDATE jobs SET state = ?, retry = ?, due_at = ?, crashes = crashes + ?, epoch = NULL,
      last_failure = coalesce(?, last_failure),
      first_tried_at = ${retry > 0 ? 'first_tried_at' : 'NULL'} WHERE rid = ?`,
    state,
    retry,
    dueAt,
    outcome.kind === 'retry' && outcome.crashed === true ? 1 : 0,
    outcome.kind === 'retry' ? (outcome.failure ?? null) : null,
    rid,
  );
  counts.add(crawlerId, state, 1);
  counts.addQueued(String(row.account_id), 1);
  counts.add(crawlerId, 'held_bytes', Number(row.size));
}

/** Stores a record, the last one of the order; the caller counts its bytes. */
export function insertResult(
  sql: Sql,
  scope: ResultSelection,
  record: CrawlRecord,
  now: Date,
  expiresAt: Date,
): void {
  insertRow(sql, 'results', {
    ...insertRecord(sql, record),
    account_id: scope.accountId,
    token_type: scope.tokenType,
    crawler_id: scope.crawlerId ?? null,
    seq: nextResultSeq(sql),
    stored_at: now.getTime(),
    expires_at: expiresAt.getTime(),
  });
}

/** Inserts the page of a record, and returns the columns that results and deliveries share. */
function insertRecord(sql: Sql, record: CrawlRecord): SqlRow {
  return {
    rid: record.rid,
    page_id: insertPage(sql, record.body),
    url: record.url,
    pushed_url: record.pushedUrl,
    cb_status: record.cbStatus,
    original_status: record.originalStatus,
    content_type: record.contentType,
    extras: detailsText(record.details),
    size: record.body.byteLength,
  };
}

function insertDelivery(
  sql: Sql,
  outcome: Extract<JobOutcome, { kind: 'delivery' }>,
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
    created_at: now.getTime(),
    expires_at: outcome.expiresAt.getTime(),
    callback_headers: JSON.stringify(outcome.callbackHeaders),
    traceparent: outcome.traceparent ?? null,
  });
  if (!held) wakeBy(sql, crawlerId, now, 'delivery');
}
