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
type OperationName = {
  [Name in keyof Aggregates]: `${Name}.${keyof Aggregates[Name] & string}`;
}[keyof Aggregates];

/**
 * When an operation is answered: `early` for reads for which clients wait, `durable` for all that
 * must be on disk before. An operation that is not listed does not compile.
 */
const ANSWERS: Readonly<Record<OperationName, 'early' | 'durable'>> = {
  'accounts.create': 'durable',
  'accounts.findByTokenHash': 'early',
  'accounts.findByName': 'early',
  'accounts.get': 'early',
  'accounts.list': 'early',
  'accounts.update': 'durable',
  'accounts.remove': 'durable',
  'accounts.usage': 'early',
  'crawlers.insert': 'durable',
  'crawlers.findByName': 'early',
  'crawlers.get': 'early',
  'crawlers.list': 'early',
  'crawlers.update': 'durable',
  'crawlers.replaceSecrets': 'durable',
  'crawlers.setPaused': 'durable',
  'crawlers.setHostPaused': 'durable',
  'crawlers.remove': 'durable',
  'crawlers.counters': 'early',
  'crawlers.claimProbes': 'durable',
  'crawlers.postponeProbes': 'durable',
  'crawlers.lateProbes': 'early',
  'crawlers.noteProbes': 'durable',
  'queue.push': 'durable',
  'queue.acquire': 'durable',
  'queue.visit': 'durable',
  'queue.release': 'durable',
  'queue.turn': 'durable',
  'queue.look': 'early',
  'queue.finish': 'durable',
  'queue.overdue': 'durable',
  'queue.crawlersWithWorkDue': 'durable',
  'queue.find': 'early',
  'queue.countScheduled': 'early',
  'queue.deleteJob': 'durable',
  'queue.deleteJobs': 'durable',
  'queue.purge': 'durable',
  'batches.get': 'early',
  'batches.list': 'early',
  'batches.close': 'durable',
  'batches.cancel': 'durable',
  'batches.done': 'durable',
  'batches.complete': 'durable',
  'hosts.save': 'durable',
  'hosts.reports': 'early',
  'hosts.queuePart': 'early',
  'hosts.purge': 'durable',
  'deliveries.get': 'early',
  'deliveries.replay': 'durable',
  'deliveries.countReplayable': 'early',
  'results.put': 'durable',
  'results.get': 'early',
  'results.newest': 'early',
  'results.getMany': 'early',
  'results.sizes': 'early',
  'results.hold': 'durable',
  'results.release': 'durable',
  'results.remove': 'durable',
  'results.rids': 'early',
  'results.count': 'early',
  'results.totals': 'early',
  'results.following': 'early',
  'results.removeUpTo': 'durable',
  'stats.samples': 'early',
  'stats.history': 'early',
  'stats.queueDepths': 'early',
  'screenshots.put': 'durable',
  'screenshots.get': 'early',
  'notices.add': 'durable',
  'notices.claim': 'durable',
  'notices.remove': 'durable',
  'notices.postpone': 'durable',
  'notices.lasting': 'durable',
  'notices.told': 'durable',
  'listings.crawlers': 'early',
  'listings.jobs': 'early',
  'listings.jobsOfHost': 'early',
  'listings.deliveries': 'early',
  'listings.results': 'early',
  'listings.failedCrawls': 'early',
  'listings.troubled': 'early',
  'listings.locate': 'early',
  'processes.report': 'durable',
  'processes.remove': 'durable',
  'processes.list': 'durable',
  'processes.database': 'durable',
  'processes.secret': 'durable',
  'cookieSessions.open': 'durable',
  'cookieSessions.change': 'durable',
  'audit.add': 'durable',
  'audit.list': 'early',
  'proxyPools.read': 'early',
  'proxyPools.replace': 'durable',
};

/** Operations that write nothing and for which clients wait. */
export const reads: ReadonlySet<string> = new Set(
  Object.keys(ANSWERS).filter((name) => ANSWERS[name as OperationName] === 'early'),
);
