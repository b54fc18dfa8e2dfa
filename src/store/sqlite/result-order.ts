import { DatabaseSync } from 'node:sqlite';
import { startOf } from '../cursor.ts';
import type { NumberedResults, ResultPlace, ResultSelection } from '../store.ts';
import { matching, type Sql } from './sql.ts';

/**
 * Takes numbers for results that are about to be inserted, and returns the first. The one writer of
 * the database numbers and inserts in one transaction, so the order of the numbers is that of the
 * commits. They are counted and not read from the results: the number of a removed one is not used
 * again.
 */
export function takeResultNumbers(sql: Sql, count: number): number {
  const last = Number(sql.get('SELECT last FROM result_order')?.last);
  sql.run('UPDATE result_order SET last = ?', last + count);
  return last + 1;
}

/**
 * Begins a new series, for a database that goes back to an earlier state: the numbers that it gives
 * next were given to other results before.
 */
export function beginResultSeries(path: string): void {
  using database = new DatabaseSync(path);
  database.exec('UPDATE result_order SET series = lower(hex(randomblob(8)))');
}

/** See `ResultStore.following`. */
export function following(
  sql: Sql,
  selection: ResultSelection,
  after: ResultPlace | undefined,
  limit: number,
): NumberedResults {
  const end = endOf(sql);
  const start = startOf(after, end);
  const { where, values } = selected(selection);
  const rows = sql.all(
    `SELECT rid, seq, size FROM results WHERE ${where} AND seq > ? ORDER BY seq LIMIT ?`,
    ...values,
    start,
    limit,
  );
  const results = rows.map(({ rid, seq, size }) => ({
    rid: String(rid),
    seq: Number(seq),
    size: Number(size),
  }));
  const isEnd = results.length < limit;
  const seq = isEnd ? end.seq : (results.at(-1)?.seq ?? start);
  return { results, place: { series: end.series, seq }, isEnd };
}

/** The `rid`s of the first results of the order up to `place`. */
export function ridsUpTo(
  sql: Sql,
  selection: ResultSelection,
  place: ResultPlace,
  limit: number,
): string[] {
  if (place.series !== endOf(sql).series) return [];
  const { where, values } = selected(selection);
  const rows = sql.all(
    `SELECT rid FROM results WHERE ${where} AND seq <= ? ORDER BY seq LIMIT ?`,
    ...values,
    place.seq,
    limit,
  );
  return rows.map(({ rid }) => String(rid));
}

function endOf(sql: Sql): ResultPlace {
  const row = sql.get('SELECT series, last FROM result_order');
  return { series: String(row?.series), seq: Number(row?.last) };
}

function selected({ accountId, tokenType, crawlerId, batchId }: ResultSelection) {
  return matching([
    ['batch_id = ?', batchId],
    ['crawler_id = ?', batchId === undefined ? crawlerId : undefined],
    ['account_id = ? AND token_type = ?', accountId, tokenType],
  ]);
}
