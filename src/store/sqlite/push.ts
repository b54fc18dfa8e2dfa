import { toWall } from '../../domain/clock.ts';
import type { Job } from '../../domain/job.ts';
import { DEFAULT_PRIORITY } from '../../domain/priority.ts';
import { chargedJobBytes } from '../../domain/quotas.ts';
import { EPISODE_END, PUSH_REQUEST_MS } from '../rules.ts';
import type { PushLimits, PushOutcome, PushReceipt, PushRequest } from '../store.ts';
import { openBatches } from './batch-counts.ts';
import { createCounts } from './counts.ts';
import { wakeBy } from './lease.ts';
import { insertRow, type Sql, toMs } from './sql.ts';
import { firstOfKey, takeKey } from './unique-keys.ts';

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
  const { crawlerId, accountId, jobs } = request;
  const room = readRoom(sql, crawlerId, accountId);
  const settings = request.settings ?? room?.settings;
  if (room === undefined || room.settings !== settings) {
    const refused = { refused: 'crawler_not_found' } as const;
    return { outcomes: jobs.map(() => refused), crossedAccountLimit: false, leased: false };
  }
  const leased = room.leaseUntil > now.getTime();
  const before = findOutcomes(sql, request, now);
  if (before !== undefined) return { outcomes: before, crossedAccountLimit: false, leased };
  const { outcomes, accepted, bytes } = insertAccepted(sql, jobs, { limits, room, now });
  notePriorities(sql, request, room);
  if (accepted > 0) count(sql, request, { accepted, bytes }, now);
  if (accepted > 0) keepOutcomes(sql, request, outcomes, now);
  const queued = room.queued + accepted;
  const crossedAccountLimit = updateEpisode(sql, accountId, { room, queued, limits });
  return { outcomes, crossedAccountLimit, leased };
}

/** What a push is checked against. */
interface Room {
  /** Waiting and retrying URLs of the crawler. */
  readonly held: number;
  /** Waiting and retrying URLs of the account. */
  readonly queued: number;
  /** Whether the account is in an episode over its limit, as of the push before. */
  readonly isOver: boolean;
  readonly purges: number;
  readonly hasPriorities: boolean;
  readonly leaseUntil: number;
  /** `CrawlerChanges.settings`. */
  readonly settings: number;
}

/** Undefined when the crawler is gone. */
function readRoom(sql: Sql, crawlerId: string, accountId: string): Room | undefined {
  const row = sql.get(
    `SELECT waiting + retrying AS held, lease_until, purges, has_priorities,
        (SELECT updated_at FROM crawlers c WHERE c.crawler_id = d.crawler_id) AS settings,
        (SELECT queued FROM accounts WHERE account_id = ?) AS queued,
        (SELECT over_limit FROM accounts WHERE account_id = ?) AS over_limit
      FROM dispatch d WHERE crawler_id = ?`,
    accountId,
    accountId,
    crawlerId,
  );
  if (row === undefined) return undefined;
  return {
    settings: Number(row.settings),
    held: Number(row.held),
    queued: Number(row.queued),
    isOver: row.over_limit === 1,
    purges: Number(row.purges),
    hasPriorities: row.has_priorities === 1,
    leaseUntil: Number(row.lease_until),
  };
}

/** The outcomes of an earlier call of the same request. */
function findOutcomes(
  sql: Sql,
  { crawlerId, requestId }: PushRequest,
  now: Date,
): PushOutcome[] | undefined {
  if (requestId === undefined) return undefined;
  const row = sql.get(
    `SELECT outcomes FROM push_requests
      WHERE crawler_id = ? AND request_id = ? AND expires_at > ?`,
    crawlerId,
    requestId,
    now.getTime(),
  );
  return row === undefined ? undefined : (JSON.parse(String(row.outcomes)) as PushOutcome[]);
}

/** Keeps the outcomes for a repetition of the request. */
function keepOutcomes(
  sql: Sql,
  { crawlerId, requestId }: PushRequest,
  outcomes: readonly PushOutcome[],
  now: Date,
): void {
  if (requestId === undefined) return;
  const row = {
    crawler_id: crawlerId,
    request_id: requestId,
    outcomes: JSON.stringify(outcomes),
    expires_at: now.getTime() + PUSH_REQUEST_MS,
  };
  const replaced = 'outcomes = excluded.outcomes, expires_at = excluded.expires_at';
  insertRow(sql, 'push_requests', row, `DO UPDATE SET ${replaced}`);
}

/** Inserts the jobs that there is room for. */
function insertAccepted(
  sql: Sql,
  jobs: readonly Job[],
  { limits, room, now }: { readonly limits: PushLimits; readonly room: Room; readonly now: Date },
) {
  let { held, queued } = room;
  let bytes = 0;
  const batches = openBatches(sql, now);
  const outcomes = jobs.map((job): PushOutcome => {
    const first = firstOfKey(sql, job, room.purges, now);
    if (first !== undefined) return { rid: first, duplicate: true };
    if (queued > limits.accountQueue) return { refused: 'account_queue_full' };
    if (held >= limits.crawlerQueue) return { refused: 'crawler_queue_full' };
    const batch = batches.open(job);
    if (batch !== undefined && 'refused' in batch) return batch;
    bytes += insert(sql, job, room.purges, batch?.batchId);
    takeKey(sql, job, room.purges);
    held += 1;
    queued += 1;
    return { rid: job.rid };
  });
  batches.write();
  return { outcomes, accepted: queued - room.queued, bytes };
}

/** Looks of a crawler go by age alone until a job has another priority than the default. */
function notePriorities(sql: Sql, { crawlerId, jobs }: PushRequest, room: Room): void {
  if (room.hasPriorities || jobs.every(({ priority }) => priority === DEFAULT_PRIORITY)) return;
  sql.run('UPDATE dispatch SET has_priorities = 1 WHERE crawler_id = ?', crawlerId);
}

/** Notes whether the account is over its limit; true if this push took it over. */
function updateEpisode(
  sql: Sql,
  accountId: string,
  {
    room,
    queued,
    limits,
  }: { readonly room: Room; readonly queued: number; readonly limits: PushLimits },
): boolean {
  const wasOver = room.isOver && room.queued > limits.accountQueue * EPISODE_END;
  const isOver = queued > limits.accountQueue;
  const goesOn = wasOver || isOver;
  if (room.isOver !== goesOn) {
    sql.run('UPDATE accounts SET over_limit = ? WHERE account_id = ?', Number(goesOn), accountId);
  }
  return isOver && !wasOver;
}

/** Inserts a job and returns the bytes it counts for. */
function insert(sql: Sql, job: Job, gen: number, batchId: string | undefined): number {
  const size = chargedJobBytes(job);
  insertRow(sql, 'jobs', {
    rid: job.rid,
    crawler_id: job.crawlerId,
    account_id: job.accountId,
    host: job.host,
    priority: job.priority,
    url: job.url,
    method: job.method,
    body: job.body ?? null,
    content_type: job.contentType ?? null,
    parameters: JSON.stringify(job.parameters),
    callback_headers: JSON.stringify(job.callbackHeaders),
    queue_deadline: toMs(job.queueDeadline),
    created_at: toWall(sql, job.createdAt).getTime(),
    state: 'waiting',
    due_at: (job.notBefore ?? job.createdAt).getTime(),
    not_before: toMs(job.notBefore),
    gen,
    size,
    unique_key: job.unique?.key ?? null,
    batch_id: batchId ?? null,
    batch: job.batch ?? null,
    again_of: job.againOf ?? null,
    metadata: job.metadata ?? null,
    traceparent: job.traceparent ?? null,
  });
  return size;
}

function count(
  sql: Sql,
  { crawlerId, accountId }: PushRequest,
  { accepted, bytes }: { readonly accepted: number; readonly bytes: number },
  now: Date,
): void {
  const counts = createCounts();
  counts.addBytes(accountId, 'queued_bytes', bytes);
  counts.add(crawlerId, 'held_bytes', bytes);
  counts.add(crawlerId, 'waiting', accepted);
  counts.add(crawlerId, 'pushed', accepted);
  counts.addQueued(accountId, accepted);
  counts.addDay(crawlerId, 'pushed', accepted);
  counts.happened(crawlerId, 'push');
  counts.write(sql, now);
  wakeBy(sql, crawlerId, now, 'job');
}
