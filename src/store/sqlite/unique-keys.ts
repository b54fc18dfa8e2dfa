import { deleteSome, insertRow, type Sql, type SqlValue } from './sql.ts';

/** The `rid` of the job that has a key; undefined if none has. */
export function firstOfKey(
  sql: Sql,
  crawlerId: string,
  key: string,
  purges: number,
  now: Date,
): string | undefined {
  const row = sql.get(
    `SELECT rid FROM unique_keys k WHERE crawler_id = ? AND key = ? AND gen = ?
      AND CASE WHEN until IS NULL THEN EXISTS (SELECT 1 FROM jobs j WHERE j.rid = k.rid)
        ELSE until > ? END`,
    crawlerId,
    key,
    purges,
    now.getTime(),
  );
  return row === undefined ? undefined : String(row.rid);
}

/** Gives the key of a new job to it. */
export function takeKey(
  sql: Sql,
  {
    crawlerId,
    until = null,
    ...key
  }: {
    readonly crawlerId: string;
    readonly key: string;
    readonly rid: string;
    readonly gen: number;
    readonly until: number | null | undefined;
  },
): void {
  insertRow(
    sql,
    'unique_keys',
    { crawler_id: crawlerId, ...key, until },
    'DO UPDATE SET rid = excluded.rid, gen = excluded.gen, until = excluded.until',
  );
}

/**
 * Frees the key of a job that is gone; one that holds until a time only if the job was removed. `key`
 * is the job's column.
 */
export function freeKey(
  sql: Sql,
  crawlerId: string,
  { rid, key }: { readonly rid: string; readonly key: SqlValue | undefined },
  how: 'ended' | 'removed',
): void {
  if (typeof key !== 'string') return;
  const which = how === 'ended' ? 'rid = ? AND until IS NULL' : 'rid = ?';
  sql.run(
    `DELETE FROM unique_keys WHERE crawler_id = ? AND key = ? AND ${which}`,
    crawlerId,
    key,
    rid,
  );
}

const KEYS = ['unique_keys', 'crawler_id, key'] as const;

/** Removes keys of before the last purge, or all of a crawler that is gone; returns how many. */
export function sweepKeys(sql: Sql, crawlerId: string, purges: number, limit: number): number {
  return deleteSome(sql, limit, ...KEYS, 'crawler_id = ? AND gen < ?', crawlerId, purges);
}

/** Removes keys that hold no longer; returns how many. */
export function expireKeys(sql: Sql, now: Date, limit: number): number {
  return deleteSome(sql, limit, ...KEYS, 'until <= ?', now.getTime());
}
