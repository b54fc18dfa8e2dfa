import type { QueuedJob } from '../../domain/job.ts';
import { createCounts } from './counts.ts';
import type { Sql, SqlValue } from './sql.ts';
import { freeKey } from './unique-keys.ts';

/** Jobs of one crawler that are to be removed. */
interface Removal {
  readonly crawlerId: string;
  /** Reads their rids, with `values`. */
  readonly selection: string;
  readonly values: readonly SqlValue[];
  /** What they count as. */
  readonly end: 'deleted' | 'purged';
  readonly now: Date;
}

/** Removes jobs, and returns their rids. */
export function removeJobs(
  sql: Sql,
  { crawlerId, selection, values, end, now }: Removal,
): string[] {
  const rows = sql.all(
    `DELETE FROM jobs WHERE rid IN (${selection})
      RETURNING rid, state, size, unique_key`,
    ...values,
  );
  const counts = createCounts();
  for (const row of rows) {
    freeKey(sql, crawlerId, { rid: String(row.rid), key: row.unique_key }, 'removed');
    const state = row.state as QueuedJob['state'];
    counts.of(crawlerId).remove({ state, size: Number(row.size) }, end);
  }
  counts.write(sql, now);
  return rows.map(({ rid }) => String(rid));
}
