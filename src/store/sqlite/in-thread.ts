import type { Verdict } from '../finish-receipt.ts';
import type { ClaimedJobs, QueueStore } from '../queue-store.ts';
import type { AggregateName, Store } from '../store.ts';
import type { Sql } from './sql.ts';

/**
 * The queue as the database thread offers it. `finish` returns the verdicts alone, because the
 * deliveries that were won would be copied back with their pages.
 */
export type ThreadQueue = Omit<QueueStore, 'finish' | 'claim'> & {
  claim(...args: Parameters<QueueStore['claim']>): Promise<Omit<ClaimedJobs, 'durable'>>;
  finish(...args: Parameters<QueueStore['finish']>): Promise<Verdict[]>;
};

/** The aggregates that the database thread offers. */
export type ThreadStore = Omit<Pick<Store, AggregateName>, 'queue'> & {
  readonly queue: ThreadQueue;
};

/**
 * An aggregate of the store as the database thread performs it: the same operations, synchronous,
 * with the connection first. Each runs inside the transaction of its batch.
 */
export type InThread<Aggregate> = {
  readonly [Name in keyof Aggregate]: Aggregate[Name] extends (
    ...args: infer Args
  ) => Promise<infer Value>
    ? (sql: Sql, ...args: Args) => Value
    : never;
};
