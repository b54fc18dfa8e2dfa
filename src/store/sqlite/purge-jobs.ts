import { tallyEnd } from '../../domain/tally.ts';
import { createCounts } from './counts.ts';
import type { Sql, SqlValue } from './sql.ts';
import { freeKey } from './unique-keys.ts';

/** Removes waiting and retrying jobs of a crawler, whose rids `selection` reads. Returns their number. */
export function purgeJobs(
  sql: Sql,
  crawlerId: string,
  selection: string,
  values: readonly SqlValue[],
  now: Date,
): number {
  const rows = sql.all(
    `DELETE FROM jobs WHERE rid IN (${selection})
      RETURNING rid, state, account_id, size, unique_key`,
    ...values,
  );
  const counts = createCounts();
  for (const row of rows) {
    freeKey(sql, crawlerId, String(row.rid), row.unique_key);
    counts.add(crawlerId, row.state === 'retrying' ? 'retrying' : 'waiting', -1);
    counts.addTally(crawlerId, tallyEnd({ end: 'purged' }));
    counts.add(crawlerId, 'held_bytes', -Number(row.size));
    counts.addQueued(String(row.account_id), -1);
    counts.addBytes(String(row.account_id), 'queued_bytes', -Number(row.size));
  }
  counts.write(sql, now);
  return rows.length;
}
