import type { HostStore, QueuedHost } from '../host-store.ts';
import type { PushLimits, QueueStore, TurnReceipt } from '../queue-store.ts';
import type { AggregateName, Store } from '../store.ts';
import type { PushRows, RowsReceipt } from './push-rows.ts';
import type { Sql } from './sql.ts';

/**
 * The queue as the database thread offers it: a turn without the deliveries that it won, which
 * would be copied back with their pages.
 */
export type ThreadQueue = Omit<QueueStore, 'turn' | 'push'> & {
  push(request: PushRows, limits: PushLimits, now: Date): Promise<RowsReceipt>;
  turn(...args: Parameters<QueueStore['turn']>): Promise<Omit<TurnReceipt, 'held'>>;
  /** A turn that has nothing to write. */
  look(...args: Parameters<QueueStore['turn']>): Promise<Omit<TurnReceipt, 'held'>>;
};

/** Where a part of the queue by host begins: after a host, or after one of its jobs. */
export interface QueuePosition {
  readonly host: string;
  readonly job?: { readonly priority: number; readonly dueMs: number; readonly rid: string };
}

/** A bounded part of the queue by host. The last host may have more jobs in the next part. */
export interface QueuePart {
  readonly hosts: readonly QueuedHost[];
  /** Undefined for the last part. */
  readonly next: QueuePosition | undefined;
}

/** The hosts as the database thread offers them: the queue in parts, so that others have their turn. */
export type ThreadHosts = Omit<HostStore, 'longest'> & {
  queuePart(crawlerId: string, after: QueuePosition): Promise<QueuePart>;
};

/** The aggregates that the database thread offers: all but the rates, which are in memory. */
export type ThreadStore = Omit<Pick<Store, AggregateName>, 'queue' | 'hosts' | 'rates'> & {
  readonly queue: ThreadQueue;
  readonly hosts: ThreadHosts;
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
