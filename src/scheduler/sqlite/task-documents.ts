import { randomUUID } from 'node:crypto';
import { type TaskDocuments, type TaskLock, taskIdentity } from '../agenda/task-documents.ts';

/**
 * Runs one SQL statement of SQLite's dialect and returns its rows; a write returns those of its
 * `RETURNING` clause.
 */
export type SqlQuery = (
  sql: string,
  params: readonly unknown[],
) => Promise<Record<string, unknown>[]>;

/** The rows that a lock still holds; its parameters come from `holder`. */
const HELD = 'id = ? AND last_modified_by = ? AND locked_at IS NOT NULL';

/** The scheduler's fenced writes on the SQLite table `agenda_jobs`. */
export function createSqliteTaskDocuments(query: SqlQuery): TaskDocuments {
  const any = async (sql: string, params: readonly unknown[]) =>
    (await query(sql, params)).length > 0;
  /** Locks the task of the `id` that `selection` finds. */
  const claim = async (selection: string, token: string, now: Date, params: readonly unknown[]) => {
    const at = now.getTime();
    const [row] = await query(
      `UPDATE agenda_jobs SET locked_at = ?, last_modified_by = ?, last_run_at = ?,
         next_run_at = CASE type WHEN 'single' THEN ? + CAST(repeat_interval AS INTEGER) END
       WHERE id = (${selection}) RETURNING id, type, data`,
      [at, token, at, at, ...params],
    );
    if (row === undefined) return undefined;
    const { key = '' } = JSON.parse(String(row.data)) as { readonly key?: string };
    return { id: String(row.id), token, key, repeats: row.type === 'single' };
  };
  const holder = (lock: TaskLock) => [lock.id, lock.token];
  return {
    async wake(name, key, at) {
      await query(
        `INSERT INTO agenda_jobs (id, task, name, type, priority, next_run_at, data)
         VALUES (?, ?, ?, 'normal', 0, ?, ?)
         ON CONFLICT (task) DO UPDATE
           SET next_run_at = min(coalesce(next_run_at, excluded.next_run_at), excluded.next_run_at)`,
        [randomUUID(), taskIdentity(name, key), name, at.getTime(), JSON.stringify({ key })],
      );
    },
    async repeat(name, intervalMs, now) {
      await query(
        `INSERT INTO agenda_jobs (id, task, name, type, priority, next_run_at, repeat_interval, data)
         VALUES (?, ?, ?, 'single', 0, ?, ?, '{}')
         ON CONFLICT (task) DO UPDATE SET repeat_interval = excluded.repeat_interval,
           next_run_at = min(coalesce(next_run_at, ?), ?)`,
        [
          randomUUID(),
          taskIdentity(name),
          name,
          now.getTime(),
          JSON.stringify(intervalMs),
          now.getTime() + intervalMs,
          now.getTime() + intervalMs,
        ],
      );
    },
    async namesDue(now, lockedBefore) {
      const rows = await query(
        `SELECT DISTINCT name FROM agenda_jobs
         WHERE (locked_at IS NULL AND next_run_at <= ?) OR locked_at <= ?`,
        [now.getTime(), lockedBefore.getTime()],
      );
      return rows.map((row) => String(row.name));
    },
    claimDue: (name, token, now, dueBy = now) =>
      claim(
        `SELECT id FROM agenda_jobs WHERE name = ? AND locked_at IS NULL AND next_run_at <= ?
         ORDER BY next_run_at, priority DESC LIMIT 1`,
        token,
        now,
        [name, dueBy.getTime()],
      ),
    claimLapsed: (name, token, lockedBefore, now) =>
      claim(
        'SELECT id FROM agenda_jobs WHERE name = ? AND locked_at <= ? ORDER BY locked_at LIMIT 1',
        token,
        now,
        [name, lockedBefore.getTime()],
      ),
    extend: (lock, now) =>
      any(`UPDATE agenda_jobs SET locked_at = ? WHERE ${HELD} RETURNING id`, [
        now.getTime(),
        ...holder(lock),
      ]),
    async finish(lock, again) {
      if (again === undefined && !lock.repeats) {
        const removed = await any(
          `DELETE FROM agenda_jobs WHERE ${HELD} AND next_run_at IS NULL RETURNING id`,
          holder(lock),
        );
        if (removed) return false;
      }
      const at = again?.getTime() ?? null;
      return any(
        `UPDATE agenda_jobs SET locked_at = NULL, last_finished_at = ?,
           next_run_at = coalesce(min(next_run_at, ?), next_run_at, ?) WHERE ${HELD} RETURNING id`,
        [Date.now(), at, at, ...holder(lock)],
      );
    },
  };
}

/**
 * Unlocks every task that was running when the last process ended, and makes it due. Only for a
 * database that one process has to itself.
 */
export async function freeSqliteTasks(query: SqlQuery, now: Date): Promise<void> {
  await query(
    `UPDATE agenda_jobs SET locked_at = NULL, next_run_at = min(coalesce(next_run_at, ?), ?)
     WHERE locked_at IS NOT NULL`,
    [now.getTime(), now.getTime()],
  );
}
