import type { QueuedJob } from '../../domain/job.ts';
import { tallyEnd } from '../../domain/tally.ts';
import { createCounts } from './counts.ts';
import { leaveState } from './finish.ts';
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
      RETURNING rid, state, account_id, size, unique_key`,
    ...values,
  );
  const counts = createCounts();
  for (const row of rows) {
    const accountId = String(row.account_id);
    const size = Number(row.size);
    freeKey(sql, crawlerId, String(row.rid), row.unique_key);
    leaveState(counts, crawlerId, { accountId, state: row.state as QueuedJob['state'], size });
    counts.addTally(crawlerId, tallyEnd({ end }));
    counts.addBytes(accountId, 'queued_bytes', -size);
  }
  counts.write(sql, now);
  return rows.map(({ rid }) => String(rid));
}
