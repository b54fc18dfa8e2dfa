import type { Lease, StartedJob, TurnReceipt, TurnWork } from '../store.ts';
import { type Counts, createCounts } from './counts.ts';
import { claimDeliveries, settleDeliveries } from './deliveries.ts';
import { endJobs } from './finish.ts';
import { current, IS_CURRENT, nextDelivery } from './lease.ts';
import { look } from './look.ts';
import type { Sql } from './sql.ts';

/**
 * Takes a turn; see `QueueStore.turn`. Without the held deliveries, whose pages would be copied
 * back to the thread that has them.
 */
export function turn(sql: Sql, lease: Lease, work: TurnWork, now: Date): Omit<TurnReceipt, 'held'> {
  const state = readState(sql, lease, now);
  const counts = createCounts();
  const epoch = state === undefined ? undefined : lease.epoch;
  const writing = { sql, now, counts, epoch };
  const verdicts = endJobs(writing, work.ended ?? []);
  const started = work.started ?? [];
  const mayStart = state !== undefined && !state.paused;
  const lost = mayStart
    ? started.filter((each) => !start(sql, counts, lease, state.purges, each))
    : started;
  const settled = settleDeliveries(writing, work.settled ?? []);
  const claimed =
    state === undefined || work.deliveries === undefined
      ? []
      : claimDeliveries(sql, lease, work.deliveries, now);
  const mayPost = state !== undefined && work.deliveries !== undefined && claimed.length === 0;
  counts.write(sql, now);
  const found =
    mayStart && work.look !== undefined
      ? look(sql, { ...state, crawlerId: lease.crawlerId }, work.look, now)
      : {};
  return {
    verdicts,
    settled,
    claimed,
    nextDeliveryAt: mayPost ? nextDelivery(sql, lease.crawlerId) : undefined,
    lost: lost.map(({ rid }) => rid),
    jobs: [],
    hasMore: false,
    nextDueAt: undefined,
    ...found,
    leaseLost: state === undefined,
    paused: state?.paused ?? false,
  };
}

/** What a turn knows of its crawler; undefined when the lease is not current. */
function readState(sql: Sql, lease: Lease, now: Date) {
  const row = sql.get(
    `SELECT d.purges, d.has_priorities, c.paused_by_user + c.paused_by_monitor AS pauses
      FROM dispatch d JOIN crawlers c USING (crawler_id) WHERE ${IS_CURRENT}`,
    ...current(lease, now),
  );
  if (row === undefined) return undefined;
  const hasPriorities = row.has_priorities === 1;
  return { purges: Number(row.purges), hasPriorities, paused: Number(row.pauses) > 0 };
}

/**
 * Sets a job running. False if it is not in the queue in the attempt before, unless an earlier try
 * of this turn has set it running.
 */
function start(
  sql: Sql,
  counts: Counts,
  { crawlerId, epoch }: Lease,
  purges: number,
  { rid, attempt, startedAt }: StartedJob,
): boolean {
  const row = sql.get(
    `SELECT retry, size FROM jobs
      WHERE rid = ? AND crawler_id = ? AND gen = ? AND attempt = ? AND state <> 'running'`,
    rid,
    crawlerId,
    purges,
    attempt - 1,
  );
  if (row === undefined) {
    const known =
      "SELECT 1 FROM jobs WHERE rid = ? AND state = 'running' AND attempt = ? AND epoch = ?";
    return sql.get(known, rid, attempt, epoch) !== undefined;
  }
  sql.run(
    `UPDATE jobs SET state = 'running', attempt = ?, epoch = ?,
      first_tried_at = coalesce(first_tried_at, ?) WHERE rid = ?`,
    attempt,
    epoch,
    startedAt.getTime(),
    rid,
  );
  const from = Number(row.retry) > 0 ? 'retrying' : 'waiting';
  counts.of(crawlerId).move(Number(row.size), from, 'running');
  return true;
}
