import { accounts } from '../accounts.ts';
import { crawlers } from '../crawlers.ts';
import { deliveries } from '../deliveries.ts';
import { maintain } from '../maintenance.ts';
import { notices } from '../notices.ts';
import { queue } from '../queue.ts';
import { rates } from '../rates.ts';
import { results } from '../results.ts';
import { screenshots } from '../screenshots.ts';
import { type Sql, type SqlRow, type SqlValue } from '../sql.ts';
import { stats } from '../stats.ts';
import { sweep } from '../sweep.ts';

const aggregates = {
  accounts,
  crawlers,
  queue,
  deliveries,
  results,
  stats,
  rates,
  screenshots,
  notices,
};

/** A synchronous operation on the database; it runs inside the batch's transaction. */
export type Operation = (sql: Sql, ...args: never[]) => unknown;

/** Runs one statement of the caller's own; the scheduler keeps its tables so. */
function query(sql: Sql, text: string, values: readonly SqlValue[]): SqlRow[] {
  return sql.all(text, ...values);
}

/** Every operation by name: `queue.push`, `query`, ... */
export const operations: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ['query', query],
  ['maintain', maintain],
  ['sweep', sweep],
  ['ping', (sql: Sql) => sql.get('SELECT 1')],
  ...Object.entries(aggregates).flatMap(([aggregate, methods]) =>
    Object.entries(methods).map(
      ([name, operation]) => [`${aggregate}.${name}`, operation as Operation] as const,
    ),
  ),
]);

/** The names of each aggregate's operations. */
export const aggregateMethods: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(aggregates).map(([name, methods]) => [name, Object.keys(methods)]),
);
