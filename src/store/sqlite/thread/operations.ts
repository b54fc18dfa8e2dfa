import { accounts } from '../accounts.ts';
import { audit } from '../audit.ts';
import { batches } from '../batches.ts';
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
import { proxyPools } from '../proxy-pools.ts';
import { type PushArguments, pushTogether } from '../push.ts';
import { queue } from '../queue.ts';
import { results } from '../results.ts';
import { tryWrite } from '../saved-time.ts';
import { screenshots } from '../screenshots.ts';
import type { Sql, SqlRow, SqlValue } from '../sql.ts';
import { stats } from '../stats.ts';
import { sweep } from '../sweep.ts';

/** Every aggregate of the store, with all of its operations. */
export const aggregates = {
  accounts,
  crawlers,
  queue,
  batches,
  hosts,
  deliveries,
  results,
  stats,
  screenshots,
  notices,
  listings,
  processes,
  cookieSessions,
  audit,
  proxyPools,
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
  ['tryWrite', tryWrite],
  ...Object.entries({ ...aggregates, pages }).flatMap(([aggregate, methods]) =>
    Object.entries(methods).map(
      ([name, operation]) => [`${aggregate}.${name}`, operation as Operation] as const,
    ),
  ),
]);

/** Operations of which calls that follow one another cost less when they are performed together. */
export const joined: ReadonlyMap<
  string,
  (sql: Sql, calls: readonly (readonly unknown[])[]) => readonly unknown[]
> = new Map([['queue.push', (sql, calls) => pushTogether(sql, calls as readonly PushArguments[])]]);

type Aggregates = typeof aggregates;

/**
 * Operations that write nothing and for which clients wait. They are answered early, all others when
 * what they wrote is on disk.
 */
const READS: { readonly [Name in keyof Aggregates]: readonly (keyof Aggregates[Name])[] } = {
  accounts: ['findByTokenHash', 'findByName', 'get', 'list', 'usage', 'full'],
  crawlers: ['findByName', 'get', 'list', 'counters', 'lateProbes'],
  queue: ['look', 'find', 'countScheduled'],
  batches: ['get', 'list'],
  hosts: ['reports', 'queuePart'],
  deliveries: ['get', 'countReplayable'],
  results: ['get', 'newest', 'getMany', 'sizes', 'rids', 'count', 'totals', 'following'],
  stats: ['samples', 'history', 'historySums', 'queueDepths'],
  screenshots: ['get'],
  notices: [],
  listings: [
    'crawlers',
    'jobs',
    'jobsOfHost',
    'deliveries',
    'results',
    'failedCrawls',
    'troubled',
    'locate',
  ],
  processes: [],
  cookieSessions: [],
  audit: ['list'],
  proxyPools: ['read', 'owners'],
};

/** The names of {@link READS}. */
export const reads: ReadonlySet<string> = new Set(
  Object.entries(READS).flatMap(([aggregate, names]) =>
    names.map((name) => `${aggregate}.${name}`),
  ),
);
