import type { Logger } from '../../domain/logger.ts';
import { type FinishReceipt, finishReceipt, type Verdict } from '../finish-receipt.ts';
import type { JobOutcome, Lease, QueueStore, Store } from '../store.ts';
import { preparePrivateFile } from './private-file.ts';
import { openSqliteDatabase, type SqliteDatabase } from './thread/database.ts';
import { aggregateMethods } from './thread/operations.ts';
import { createUpkeep } from './upkeep.ts';

/** What the embedded store is opened with. */
export interface SqliteStoreOptions {
  /** Made when it is not there. One process at a time may have it. */
  readonly dataDir: string;
  readonly logger: Logger;
  /** Told when the database is lost for good. */
  readonly onFatal?: (error: Error) => void;
}

/** The open store, and its database for what else is kept there. */
export interface OpenSqliteStore {
  readonly store: Store;
  readonly query: SqliteDatabase['query'];
  readonly database: Pick<SqliteDatabase, 'commits'>;
}

/**
 * Opens the embedded store in `DATA_DIR/queued-crawler.db`. What a process that has crashed was working on is due again.
 * `store.close` closes the database.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<OpenSqliteStore> {
  const path = await preparePrivateFile(options.dataDir, 'queued-crawler.db', options.logger);
  const database = await openSqliteDatabase(path, options.onFatal ?? (() => undefined));
  const aggregates = [...aggregateMethods].map(([aggregate, names]) => {
    const methods = names.map((name) => {
      const operation = `${aggregate}.${name}`;
      return [name, (...args: unknown[]) => database.call(operation, args)];
    });
    return [aggregate, Object.fromEntries(methods) as unknown];
  });
  const upkeep = createUpkeep(database);
  const parts = Object.fromEntries(aggregates) as Omit<Store, 'ping' | 'maintain' | 'close'>;
  const store = {
    ...parts,
    queue: {
      ...parts.queue,
      finish: (outcomes, now, lease) => finish(database, outcomes, now, lease),
      purge: upkeep.sweepsAfter(parts.queue.purge),
    } satisfies QueueStore,
    crawlers: { ...parts.crawlers, remove: upkeep.sweepsAfter(parts.crawlers.remove) },
    ping: async () => void (await database.call('ping', [])),
    maintain: upkeep.maintain,
    close: () => database.close(),
  };
  return { store, query: database.query, database };
}

async function finish(
  database: Pick<SqliteDatabase, 'call'>,
  outcomes: readonly JobOutcome[],
  now: Date,
  lease?: Lease,
): Promise<FinishReceipt> {
  const verdicts = (await database.call('queue.finish', [outcomes, now, lease])) as Verdict[];
  return finishReceipt(outcomes, verdicts, now, lease);
}
