import { accounts } from '../accounts.ts';
import { cookieSessions } from '../cookie-sessions.ts';
import { crawlers } from '../crawlers.ts';
import { deliveries } from '../deliveries.ts';
import { hosts } from '../hosts.ts';
import type { InThread, ThreadStore } from '../in-thread.ts';
import { listings } from '../listings.ts';
import { maintain } from '../maintenance.ts';
import { notices } from '../notices.ts';
import { pages } from '../pages.ts';
import { processes } from '../processes.ts';
import { queue } from '../queue.ts';
import { results } from '../results.ts';
import { screenshots } from '../screenshots.ts';
import type { Sql, SqlRow, SqlValue } from '../sql.ts';
import { stats } from '../stats.ts';
import { sweep } from '../sweep.ts';

/** Every aggregate of the store, with all of its operations. */
export const aggregates = {
  accounts,
  crawlers,
  queue,
  hosts,
  deliveries,
  results,
  stats,
  screenshots,
  notices,
  listings,
  processes,
  cookieSessions,
} satisfies { readonly [Name in keyof ThreadStore]: InThread<ThreadStore[Name]> };

/** A synchronous operation on the database; it runs inside the transaction of its batch. */
export type Operation = (sql: Sql, ...args: never[]) => unknown;

/** Runs one statement for a caller that keeps tables of its own in the database: the scheduler. */
function query(sql: Sql, text: string, values: readonly SqlValue[]): SqlRow[] {
  return sql.all(text, ...values);
}

/** Every operation by name: `queue.push`, `query`, ... */
export const operations: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ['query', query],
  ['maintain', maintain],
  ['sweep', sweep],
  ['ping', (sql: Sql) => sql.get('SELECT 1')],
  ...Object.entries({ ...aggregates, pages }).flatMap(([aggregate, methods]) =>
    Object.entries(methods).map(
      ([name, operation]) => [`${aggregate}.${name}`, operation as Operation] as const,
    ),
  ),
]);

type Aggregates = typeof aggregates;
type OperationName = {
  [Name in keyof Aggregates]: `${Name}.${keyof Aggregates[Name] & string}`;
}[keyof Aggregates];

const READS = [
  'accounts.findByTokenHash',
  'accounts.findByName',
  'accounts.get',
  'accounts.list',
  'accounts.queued',
  'accounts.usage',
  'crawlers.findByName',
  'crawlers.get',
  'crawlers.list',
  'crawlers.counters',
  'crawlers.lateProbes',
  'queue.look',
  'queue.find',
  'queue.countScheduled',
  'queue.listQueued',
  'hosts.reports',
  'hosts.longest',
  'deliveries.get',
  'deliveries.countReplayable',
  'results.get',
  'results.newestByUrl',
  'results.getMany',
  'results.sizes',
  'results.rids',
  'results.count',
  'results.totals',
  'results.following',
  'stats.history',
  'stats.queueDepths',
  'screenshots.get',
  'listings.crawlers',
  'listings.jobs',
  'listings.deliveries',
  'listings.results',
  'listings.locate',
] as const satisfies readonly OperationName[];

/** Operations that write nothing and for which clients wait. */
export const reads: ReadonlySet<string> = new Set(READS);
