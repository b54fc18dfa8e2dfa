import { type Db, MongoClient, MongoServerSelectionError } from 'mongodb';
import type { ServiceClock } from '../../domain/clock.ts';
import { withDeadline } from '../../domain/deadline.ts';
import { databaseAlone, databaseUnavailable } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';
import { createRid } from '../../domain/rid.ts';
import type { StoreTraits } from '../../domain/store-traits.ts';
import { decorateStore } from '../decorate-store.ts';
import type { Store } from '../store.ts';
import { createAccounts } from './accounts.ts';
import { createTimeServer } from './agreed-time.ts';
import { createAudit } from './audit.ts';
import { createBatches } from './batches.ts';
import { clientOptions, withoutOurs } from './client-options.ts';
import { toCollections } from './collections.ts';
import { watchConnection } from './connection-watch.ts';
import { createCookieSessions } from './cookie-sessions.ts';
import { createCrawlers } from './crawlers.ts';
import { createDeliveries } from './deliveries.ts';
import { createHosts } from './hosts.ts';
import { createLanes } from './lanes.ts';
import { createListings } from './listings.ts';
import { createMaintenance } from './maintenance.ts';
import { migrate } from './migrations.ts';
import { toDomainError } from './mongo-errors.ts';
import { createNotices } from './notices.ts';
import { untilUnused, type WaitTimes } from './other-versions.ts';
import { createProcesses } from './processes.ts';
import { createProxyPools } from './proxy-pools.ts';
import { createQueue } from './queue.ts';
import { createRates } from './rates.ts';
import { createResults } from './results.ts';
import { createScreenshots } from './screenshots.ts';
import { openServiceTime } from './service-time.ts';
import { createShares } from './shares.ts';
import { createStats } from './stats.ts';
import { createTransactions } from './transactions.ts';
import { refuseUnfinishedCopy } from './unfinished-copy.ts';
import { whyUnreachable } from './why-unreachable.ts';

/** Options of {@link openMongoStore}. */
export interface MongoStoreOptions {
  /** A connection string; its path names the database, `queued_crawler` when it has none. */
  readonly uri: string;
  readonly logger: Logger;
  /** Whether an unfinished copy is continued. Default: a database that holds one is refused. */
  readonly continuesCopy?: boolean;
  /**
   * Called when only a new process can use the database: this one does not reach it any more, or a
   * newer program has upgraded it. Default: nothing happens then.
   */
  readonly onFatal?: (error: Error) => void;
  /** How an upgrade waits for processes of the version before; see `untilUnused`. */
  readonly waitTimes?: WaitTimes | undefined;
  /** Ends that wait. */
  readonly signal?: AbortSignal | undefined;
}

/** The open store, and its database for the scheduler's collections. */
export interface OpenMongoStore {
  readonly store: Store;
  /** The service time, and the server's. */
  readonly clock: ServiceClock;
  readonly db: Db;
}

/** Deadline of one call: the driver can wait for ever for a connection that was just closed. */
const ANSWER_MS = 75_000;
/** For connections to a database that a newer program has upgraded. */
const CLOSE_MS = 3_000;
const DEFAULT_DATABASE = 'queued_crawler';
const TRAITS: StoreTraits = {
  name: 'mongodb',
  shared: true,
  costOfATurn: 'round_trips',
  // A command for many pages costs hardly more than one for a few.
  writeBytes: 4 * 1024 * 1024,
  localDisk: undefined,
};

/**
 * Opens the store on MongoDB: a replica set or a sharded cluster, because it needs transactions.
 * Every write is acknowledged by a majority and is in the journal, every read is from the primary.
 * `store.close` closes the connection.
 */
export async function openMongoStore(options: MongoStoreOptions): Promise<OpenMongoStore> {
  const { logger, onFatal = () => undefined } = options;
  const uri = withoutOurs(options.uri);
  const client = new MongoClient(uri, clientOptions);
  try {
    await client.connect();
    const named = client.options.dbName;
    const db = client.db(
      named === 'test' && !/\/test(\?|$)/.test(options.uri) ? DEFAULT_DATABASE : named,
    );
    await requireTransactions(db);
    if (options.continuesCopy !== true) await refuseUnfinishedCopy(db);
    const processId = createRid(new Date());
    const time = await openServiceTime(createTimeServer(db), processId, logger);
    const collections = toCollections(db, time);
    const transactions = createTransactions(() => client.startSession(), client.db('admin'));
    let isTooOld = false;
    const processes = createProcesses(db, collections, async (error) => {
      if (isTooOld) return;
      isTooOld = true;
      // So that nothing more is written, not even by what ends now.
      watch.close();
      await withDeadline(client.close(), CLOSE_MS, () => error).catch(() => undefined);
      onFatal(error);
    });
    await migrate(db, collections, transactions, logger, (isMigrated) =>
      untilUnused({
        processes,
        clock: time,
        logger,
        isMigrated,
        signal: options.signal,
        times: options.waitTimes,
      }),
    );
    const lanes = createLanes(collections, transactions, processId);
    const watch = watchConnection({ client, uri, options: clientOptions, logger, onFatal });
    const store: Store = {
      traits: TRAITS,
      transactions: transactions.counts,
      accounts: createAccounts(collections, lanes.accounts),
      crawlers: createCrawlers(collections, lanes),
      queue: createQueue(collections, lanes),
      batches: createBatches(collections, lanes),
      hosts: createHosts(collections, lanes),
      shares: createShares(collections),
      deliveries: createDeliveries(collections, lanes),
      results: createResults(collections, lanes),
      stats: createStats(collections, lanes),
      rates: createRates(collections),
      screenshots: createScreenshots(collections, lanes.accounts),
      notices: createNotices(collections),
      listings: createListings(collections),
      processes,
      cookieSessions: createCookieSessions(collections),
      audit: createAudit(collections),
      proxyPools: createProxyPools(collections),
      ping: async () => void (await db.command({ ping: 1 })),
      maintain: createMaintenance(collections, lanes),
      async close() {
        time.close();
        watch.close();
        await lanes.accounts.flush();
        await client.close();
      },
    };
    return { store: withDomainErrors(store, options.logger, watch.answered), clock: time, db };
  } catch (error) {
    await client.close();
    throw toDomainError(explained(error));
  }
}

/** The error, with what the driver knows of the servers. */
function explained(error: unknown): unknown {
  if (!(error instanceof MongoServerSelectionError)) return error;
  const why = whyUnreachable(error.reason);
  return why === undefined
    ? error
    : databaseUnavailable(undefined, new Error(why, { cause: error }));
}

const noAnswer = (): Error => databaseUnavailable('The database did not answer in time.');

/** Throws for a server that has no transactions. */
export async function requireTransactions(db: Pick<Db, 'command'>): Promise<void> {
  const { setName, msg } = await db.command({ hello: 1 });
  if (setName === undefined && msg !== 'isdbgrid') throw databaseAlone();
}

/**
 * The same store, with driver errors converted to domain errors. `onAnswer` is called for each call
 * that the database has answered.
 */
function withDomainErrors(store: Store, logger: Logger, onAnswer: () => void): Store {
  return decorateStore(store, async (operation, call) => {
    try {
      const answer = await withDeadline(call(), ANSWER_MS, noAnswer);
      onAnswer();
      return answer;
    } catch (error) {
      logger.debug({ err: error, operation }, 'the database refused an operation');
      throw toDomainError(error);
    }
  });
}
