import { defined } from '../../domain/defined.ts';
import { earliest, noSooner } from '../queue-depth.ts';
import { heldBackBy, type Pauses, type WorkKind } from '../rules.ts';
import type { CrawlerChanges, HeldUntil, Lease } from '../store.ts';
import { createCounts } from './counts.ts';
import { type Sql, type SqlValue, toOptionalDate } from './sql.ts';

/** The columns of a crawler's pauses. */
const pauseColumns: Readonly<Record<keyof Pauses, string>> = {
  pausedByUser: 'paused_by_user',
  pausedByMonitor: 'paused_by_monitor',
};

/** The condition that the lease is the crawler's current one and has not lapsed. */
export const IS_CURRENT = 'crawler_id = ? AND epoch = ? AND lease_owner = ? AND lease_until > ?';

/** The values of {@link IS_CURRENT}. */
export function current({ crawlerId, epoch, owner }: Lease, now: Date): SqlValue[] {
  return [crawlerId, epoch, owner, now.getTime()];
}

function isCurrent(sql: Sql, lease: Lease, now: Date): boolean {
  const text = `SELECT 1 FROM dispatch WHERE ${IS_CURRENT}`;
  return sql.get(text, ...current(lease, now)) !== undefined;
}

/** Whether the crawler has a live lease. */
export function isLeased(sql: Sql, crawlerId: string, now: Date): boolean {
  const row = sql.get(
    'SELECT 1 FROM dispatch WHERE crawler_id = ? AND lease_until > ?',
    crawlerId,
    now.getTime(),
  );
  return row !== undefined;
}

/**
 * The number of purges of the crawler's queue: waiting and retrying jobs of an earlier `gen` are
 * gone. Undefined if the crawler itself is gone, although rows of it may be left.
 */
export function purgeCount(sql: Sql, crawlerId: string): number | undefined {
  const row = sql.get('SELECT purges FROM dispatch WHERE crawler_id = ?', crawlerId);
  return row === undefined ? undefined : Number(row.purges);
}

/** `purgeCount` that reads each crawler once, for many rows of one transaction. */
export function rememberedPurgeCount(sql: Sql): (crawlerId: string) => number | undefined {
  const known = new Map<string, number | undefined>();
  return (crawlerId) => {
    if (!known.has(crawlerId)) known.set(crawlerId, purgeCount(sql, crawlerId));
    return known.get(crawlerId);
  };
}

/** Takes the lease; see `QueueStore.acquire`. */
export function acquire(
  sql: Sql,
  crawlerId: string,
  owner: string,
  ttlMs: number,
  now: Date,
): Lease | undefined {
  const before = sql.get(
    `SELECT lease_owner, updated_at FROM dispatch JOIN crawlers USING (crawler_id)
      WHERE crawler_id = ?`,
    crawlerId,
  );
  const row = sql.get(
    // While leased the crawler has a wake time, because the holder may crash.
    `UPDATE dispatch SET epoch = epoch + 1, lease_owner = ?, lease_until = ?, wake_at = ?
      WHERE crawler_id = ? AND (lease_until <= ? OR lease_owner = ?) RETURNING epoch`,
    owner,
    now.getTime() + ttlMs,
    now.getTime(),
    crawlerId,
    now.getTime(),
    owner,
  );
  if (row === undefined) return undefined;
  const epoch = Number(row.epoch);
  requeue(sql, { crawlerId, epoch, now, crashed: before?.lease_owner !== owner });
  return { crawlerId, owner, epoch, ...defined({ settings: before && Number(before.updated_at) }) };
}

/** The work of former holders of a lease. */
interface FormerWork {
  readonly crawlerId: string;
  /** The work of epochs before this one. */
  readonly epoch: number;
  readonly now: Date;
  /** Whether the process that did the work counts as crashed. */
  readonly crashed?: boolean;
}

/**
 * Makes the work of former holders due again. A running job that was purged since its start ends.
 */
function requeue(sql: Sql, { crawlerId, epoch, now, crashed = false }: FormerWork): void {
  const purges = purgeCount(sql, crawlerId);
  if (purges === undefined) return;
  const counts = createCounts();
  const changes = counts.of(crawlerId);
  const purged = sql.all(
    `DELETE FROM jobs
      WHERE crawler_id = ? AND state = 'running' AND (epoch IS NULL OR epoch < ?) AND gen < ?
      RETURNING size`,
    crawlerId,
    epoch,
    purges,
  );
  for (const { size } of purged) changes.remove({ state: 'running', size: Number(size) }, 'purged');
  const back = sql.all(
    `UPDATE jobs SET state = CASE retry WHEN 0 THEN 'waiting' ELSE 'retrying' END,
      due_at = min(due_at, ?), crashes = crashes + ?, epoch = NULL
      WHERE crawler_id = ? AND state = 'running' AND (epoch IS NULL OR epoch < ?)
      RETURNING retry, size`,
    now.getTime(),
    crashed ? 1 : 0,
    crawlerId,
    epoch,
  );
  for (const { retry, size } of back) {
    changes.move(Number(size), 'running', Number(retry) > 0 ? 'retrying' : 'waiting');
  }
  counts.write(sql, now);
  sql.run(
    `UPDATE deliveries SET state = 'due', due_at = min(due_at, ?), epoch = NULL
      WHERE crawler_id = ? AND state = 'sending' AND (epoch IS NULL OR epoch < ?)`,
    now.getTime(),
    crawlerId,
    epoch,
  );
}

/**
 * Looks at crawlers and renews their leases; see `QueueStore.visit`. The only process knows of all
 * work that is pushed.
 */
export function visit(
  sql: Sql,
  leases: readonly Lease[],
  now: Date,
  ttlMs?: number,
): CrawlerChanges[] {
  return leases.flatMap((lease): CrawlerChanges[] => {
    const { crawlerId, epoch } = lease;
    const row = sql.get('SELECT updated_at FROM crawlers WHERE crawler_id = ?', crawlerId);
    if (row === undefined) return [];
    const held = ttlMs === undefined ? isCurrent(sql, lease, now) : prolong(sql, lease, now, ttlMs);
    return [{ crawlerId, epoch, held, work: 0, settings: Number(row.updated_at) }];
  });
}

/** Prolongs the lease; false if it is not current. */
function prolong(sql: Sql, lease: Lease, now: Date, ttlMs: number): boolean {
  const text = `UPDATE dispatch SET lease_until = ? WHERE ${IS_CURRENT}`;
  return sql.run(text, now.getTime() + ttlMs, ...current(lease, now)) > 0;
}

/** Ends the lease; see `QueueStore.release`. */
export function release(
  sql: Sql,
  lease: Lease,
  now: Date,
  heldUntil?: HeldUntil,
): { wakeAt: Date | undefined } {
  const ended = sql.run(
    `UPDATE dispatch SET lease_until = 0, lease_owner = NULL
      WHERE crawler_id = ? AND epoch = ? AND lease_owner = ?`,
    lease.crawlerId,
    lease.epoch,
    lease.owner,
  );
  // The wake time stays, because the present holder may crash.
  if (ended === 0) return { wakeAt: nextWorkAt(sql, lease.crawlerId) };
  requeue(sql, { crawlerId: lease.crawlerId, epoch: lease.epoch + 1, now });
  return { wakeAt: setWake(sql, lease.crawlerId, heldUntil) };
}

/** When the crawler has work next; undefined when it has none, or all of it is paused. */
function nextWorkAt(sql: Sql, crawlerId: string, held: HeldUntil = {}): Date | undefined {
  const row = sql.get(
    'SELECT paused_by_user, paused_by_monitor FROM crawlers WHERE crawler_id = ?',
    crawlerId,
  );
  if (row === undefined || row.paused_by_monitor === 1) return undefined;
  const delivery = noSooner(nextDelivery(sql, crawlerId), held.delivery);
  if (row.paused_by_user === 1) return delivery;
  const job = sql.get(
    `SELECT min(due_at) AS due FROM jobs WHERE crawler_id = ? AND gen = ? AND state <> 'running'`,
    crawlerId,
    purgeCount(sql, crawlerId) ?? -1,
  )?.due;
  return earliest([delivery, noSooner(toOptionalDate(job), held.job)]);
}

/** When the crawler's next delivery falls due; undefined when none waits. */
export function nextDelivery(sql: Sql, crawlerId: string): Date | undefined {
  const text = "SELECT min(due_at) AS due FROM deliveries WHERE crawler_id = ? AND state = 'due'";
  return toOptionalDate(sql.get(text, crawlerId)?.due);
}

/** Sets the crawler's wake time to its next work. */
export function setWake(sql: Sql, crawlerId: string, held?: HeldUntil): Date | undefined {
  const wakeAt = nextWorkAt(sql, crawlerId, held);
  sql.run(
    'UPDATE dispatch SET wake_at = ? WHERE crawler_id = ?',
    wakeAt?.getTime() ?? null,
    crawlerId,
  );
  return wakeAt;
}

/**
 * Notes that the crawler has work at `at`: lowers its wake time to it. Not during a pause that
 * holds the work back, whose end sets the wake time.
 */
export function wakeBy(sql: Sql, crawlerId: string, at: Date, work: WorkKind): void {
  const paused = heldBackBy[work].map((pause) => `${pauseColumns[pause]} = 1`).join(' OR ');
  sql.run(
    `UPDATE dispatch SET wake_at = ? WHERE crawler_id = ? AND (wake_at IS NULL OR wake_at > ?)
      AND NOT EXISTS (SELECT 1 FROM crawlers WHERE crawler_id = ? AND (${paused}))`,
    at.getTime(),
    crawlerId,
    at.getTime(),
    crawlerId,
  );
}

/** Ends every lease: only this process can hold one, and it has only just started. */
export function voidLeases(sql: Sql, now: Date): void {
  const leased = sql.all(
    `SELECT crawler_id, epoch FROM dispatch WHERE lease_owner IS NOT NULL
      UNION SELECT d.crawler_id, d.epoch FROM jobs j JOIN dispatch d USING (crawler_id)
        WHERE j.state = 'running'`,
  );
  for (const row of leased) {
    const crawlerId = String(row.crawler_id);
    requeue(sql, { crawlerId, epoch: Number(row.epoch) + 1, now, crashed: true });
    sql.run(
      'UPDATE dispatch SET lease_until = 0, lease_owner = NULL WHERE crawler_id = ?',
      crawlerId,
    );
    setWake(sql, crawlerId);
  }
}
