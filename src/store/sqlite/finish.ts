import type { CrawlRecord } from '../../domain/job.ts';
import { recordBytesOf } from '../../domain/quotas.ts';
import type { Verdict } from '../finish-receipt.ts';
import type { JobOutcome, Lease } from '../store.ts';
import { type Counts, createCounts } from './counts.ts';
import { purgesOf, wakeBy } from './lease.ts';
import { insertPage } from './pages.ts';
import type { Sql, SqlRow } from './sql.ts';

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
  const verdicts = outcomes.map((outcome) => finishOne(sql, outcome, now, counts, lease?.epoch));
  counts.write(sql, now);
  return verdicts;
}

function finishOne(
  sql: Sql,
  outcome: JobOutcome,
  now: Date,
  counts: Counts,
  epoch: number | undefined,
): Verdict {
  const { rid, crawlerId, attempt } = outcome;
  const state = outcome.timedOut === true ? 'waiting' : 'running';
  const purges = purgesOf(sql, crawlerId);
  if (purges === undefined) return 'lost';
  const row = sql.get(
    `SELECT account_id, retry, gen, size FROM jobs WHERE rid = ? AND crawler_id = ? AND attempt = ? AND state = ?
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
    goBack(sql, outcome, row, purges, now, counts);
    return 'won';
  }
  sql.run('DELETE FROM jobs WHERE rid = ?', rid);
  counts.add(crawlerId, state, -1);
  counts.addBytes(accountId, 'queued_bytes', -Number(row.size));
  counts.addBytes(accountId, 'stored_bytes', recordBytesOf(outcome.record));
  if (state === 'waiting') {
    counts.addQueued(accountId, -1);
    counts.add(crawlerId, 'held_bytes', -Number(row.size));
    counts.addDay(crawlerId, 'timeouts', 1);
  } else counts.happened(crawlerId, 'last_crawl_at');
  const success = outcome.record.cbStatus === 200;
  counts.add(crawlerId, success ? 'completed' : 'failed', 1);
  counts.addDay(crawlerId, success ? 'success' : 'failed', 1);
  counts.addStatus(crawlerId, outcome.record.cbStatus);
  if (outcome.billed) counts.addDay(crawlerId, 'billed', 1);
  if (outcome.kind === 'stored') {
    insertResult(
      sql,
      { accountId, tokenType: outcome.tokenType },
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

function goBack(
  sql: Sql,
  outcome: Extract<JobOutcome, { kind: 'retry' | 'release' }>,
  row: SqlRow,
  purges: number,
  now: Date,
  counts: Counts,
): void {
  const { rid, crawlerId } = outcome;
  const more = outcome.kind === 'retry' ? 1 : 0;
  if (more > 0) counts.addDay(crawlerId, 'retries', 1);
  counts.add(crawlerId, 'running', -1);
  if (Number(row.gen) < purges) {
    // It was running when the queue was purged.
    sql.run('DELETE FROM jobs WHERE rid = ?', rid);
    counts.add(crawlerId, 'purged', 1);
    counts.addDay(crawlerId, 'purged', 1);
    counts.addBytes(String(row.account_id), 'queued_bytes', -Number(row.size));
    return;
  }
  const retry = Number(row.retry) + more;
  const state = retry > 0 ? 'retrying' : 'waiting';
  const dueAt = (outcome.dueAt ?? now).getTime();
  sql.run(
    `UPDATE jobs SET state = ?, retry = ?, due_at = ?, crashes = crashes + ?, epoch = NULL,
      first_tried_at = ${retry > 0 ? 'first_tried_at' : 'NULL'} WHERE rid = ?`,
    state,
    retry,
    dueAt,
    outcome.kind === 'retry' && outcome.crashed === true ? 1 : 0,
    rid,
  );
  counts.add(crawlerId, state, 1);
  counts.addQueued(String(row.account_id), 1);
  counts.add(crawlerId, 'held_bytes', Number(row.size));
}

/** Stores a record; the caller counts its bytes. */
export function insertResult(
  sql: Sql,
  scope: { readonly accountId: string; readonly tokenType: string },
  record: CrawlRecord,
  now: Date,
  expiresAt: Date,
): void {
  sql.run(
    `INSERT INTO results (rid, account_id, token_type, page_id, stored_at, expires_at, url, pushed_url, cb_status,
      original_status, content_type, extras, size) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    record.rid,
    scope.accountId,
    scope.tokenType,
    insertPage(sql, record.body),
    now.getTime(),
    expiresAt.getTime(),
    record.url,
    record.pushedUrl,
    record.cbStatus,
    record.originalStatus,
    record.contentType,
    JSON.stringify(record.extras),
    record.body.byteLength,
  );
}

function insertDelivery(
  sql: Sql,
  outcome: Extract<JobOutcome, { kind: 'delivery' }>,
  now: Date,
  epoch: number | undefined,
): void {
  const { record, rid, crawlerId } = outcome;
  const held = epoch !== undefined;
  sql.run(
    `INSERT INTO deliveries (rid, crawler_id, page_id, state, due_at, attempt, epoch, created_at, expires_at, url,
      pushed_url, cb_status, original_status, content_type, extras, callback_headers, size)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    rid,
    crawlerId,
    insertPage(sql, record.body),
    held ? 'sending' : 'due',
    now.getTime(),
    held ? 1 : 0,
    epoch ?? null,
    now.getTime(),
    outcome.expiresAt.getTime(),
    record.url,
    record.pushedUrl,
    record.cbStatus,
    record.originalStatus,
    record.contentType,
    JSON.stringify(record.extras),
    JSON.stringify(outcome.callbackHeaders),
    record.body.byteLength,
  );
  if (!held) wakeBy(sql, crawlerId, now, 'delivery');
}
