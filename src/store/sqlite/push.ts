import type { Job } from '../../domain/job.ts';
import { chargedJobBytes } from '../../domain/quotas.ts';
import { EPISODE_END, PUSH_REQUEST_MS } from '../rules.ts';
import type { PushLimits, PushOutcome, PushReceipt, PushRequest } from '../store.ts';
import { type Counts, createCounts } from './counts.ts';
import { wakeBy } from './lease.ts';
import { insertRow, type Sql, toMs } from './sql.ts';

/** Checks the limits and inserts the jobs; see `QueueStore.push`. */
export function push(
  sql: Sql,
  requests: readonly PushRequest[],
  limits: PushLimits,
  now: Date,
): PushReceipt[] {
  return requests.map((request) => pushOne(sql, request, limits, now));
}

function pushOne(sql: Sql, request: PushRequest, limits: PushLimits, now: Date): PushReceipt {
  const { crawlerId, accountId, jobs, requestId } = request;
  const row = sql.get(
    `SELECT waiting + retrying AS held, lease_until, purges, (SELECT queued FROM accounts WHERE account_id = ?) AS queued,
      (SELECT over_limit FROM accounts WHERE account_id = ?) AS over_limit FROM dispatch WHERE crawler_id = ?`,
    accountId,
    accountId,
    crawlerId,
  );
  if (row === undefined) {
    const refused = { refused: 'crawler_not_found' } as const;
    return { outcomes: jobs.map(() => refused), crossedAccountLimit: false, leased: false };
  }
  const leased = Number(row.lease_until) > now.getTime();
  if (requestId !== undefined) {
    const before = sql.get(
      'SELECT outcomes FROM push_requests WHERE crawler_id = ? AND request_id = ? AND expires_at > ?',
      crawlerId,
      requestId,
      now.getTime(),
    );
    if (before !== undefined) {
      const outcomes = JSON.parse(String(before.outcomes)) as PushOutcome[];
      return { outcomes, crossedAccountLimit: false, leased };
    }
  }

  const counts = createCounts();
  let held = Number(row.held);
  let queued = Number(row.queued);
  let bytes = 0;
  const outcomes = jobs.map((job): PushOutcome => {
    if (queued > limits.accountQueue) return { refused: 'account_queue_full' };
    if (held >= limits.crawlerQueue) return { refused: 'crawler_queue_full' };
    bytes += insert(sql, job, Number(row.purges));
    held += 1;
    queued += 1;
    return { rid: job.rid };
  });
  const accepted = queued - Number(row.queued);
  if (accepted > 0) {
    counts.addBytes(accountId, 'queued_bytes', bytes);
    counts.add(crawlerId, 'held_bytes', bytes);
    count(counts, request, accepted, sql, now);
  }
  if (requestId !== undefined && jobs.length > 0) {
    insertRow(
      sql,
      'push_requests',
      {
        crawler_id: crawlerId,
        request_id: requestId,
        outcomes: JSON.stringify(outcomes),
        expires_at: now.getTime() + PUSH_REQUEST_MS,
      },
      'DO UPDATE SET outcomes = excluded.outcomes, expires_at = excluded.expires_at',
    );
  }
  const wasOver = row.over_limit === 1 && Number(row.queued) > limits.accountQueue * EPISODE_END;
  const isOver = queued > limits.accountQueue;
  if (Number(row.over_limit) !== Number(wasOver || isOver)) {
    const over = Number(wasOver || isOver);
    sql.run('UPDATE accounts SET over_limit = ? WHERE account_id = ?', over, accountId);
  }
  return { outcomes, crossedAccountLimit: isOver && !wasOver, leased };
}

/** Inserts a job and returns the bytes it counts for. */
function insert(sql: Sql, job: Job, gen: number): number {
  const size = chargedJobBytes(job);
  insertRow(sql, 'jobs', {
    rid: job.rid,
    crawler_id: job.crawlerId,
    account_id: job.accountId,
    url: job.url,
    method: job.method,
    body: job.body ?? null,
    content_type: job.contentType ?? null,
    parameters: JSON.stringify(job.parameters),
    callback_headers: JSON.stringify(job.callbackHeaders),
    queue_deadline: toMs(job.queueDeadline),
    created_at: job.createdAt.getTime(),
    state: 'waiting',
    due_at: job.createdAt.getTime(),
    gen,
    size,
  });
  return size;
}

function count(counts: Counts, request: PushRequest, accepted: number, sql: Sql, now: Date): void {
  const { crawlerId, accountId } = request;
  counts.add(crawlerId, 'waiting', accepted);
  counts.add(crawlerId, 'pushed', accepted);
  counts.addQueued(accountId, accepted);
  counts.addDay(crawlerId, 'pushed', accepted);
  counts.happened(crawlerId, 'push');
  counts.write(sql, now);
  wakeBy(sql, crawlerId, now, 'job');
}
