import { type ServiceClock, toWall } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { Logger } from '../../domain/logger.ts';
import { heldDeliveries } from '../held-deliveries.ts';
import type { Store, TurnWork } from '../store.ts';
import { logUpgrade, type UpgradeStep } from '../upgrade-step.ts';
import type { ThreadStore } from './in-thread.ts';
import { longestHosts } from './longest-hosts.ts';
import { createPageWriter, ONE_WRITE_BYTES } from './page-writer.ts';
import { preparePrivateFile } from './private-file.ts';
import { toReceipt, toRows } from './push-rows.ts';
import { createRates } from './rates.ts';
import { openSqliteDatabase, type SqliteDatabase } from './thread/database.ts';
import { aggregates } from './thread/operations.ts';
import { createUpkeep } from './upkeep.ts';

/** Options of {@link openSqliteStore}. */
export interface SqliteStoreOptions {
  /** Created if it does not exist. One process at a time can open it. */
  readonly dataDir: string;
  readonly logger: Logger;
  /** Called once when the database is lost for good. */
  readonly onFatal?: (error: Error) => void;
  /** Called before each step of an upgrade; logs it by default. */
  readonly onUpgrade?: (step: UpgradeStep) => void;
}

/** The open store, and its database for the scheduler's tables. */
export interface OpenSqliteStore {
  readonly store: Store;
  /** The service time, and the machine's. */
  readonly clock: ServiceClock;
  readonly query: SqliteDatabase['query'];
  readonly database: Pick<SqliteDatabase, 'commits'>;
  /** The file of the database. */
  readonly path: string;
  readonly backup: SqliteDatabase['backup'];
}

/** A clock that is set by less is not worth a line in the log. */
const LARGE_MS = 1_000;

/**
 * Opens the embedded store in `DATA_DIR/queued-crawler.db`. Work that a crashed process had in
 * progress is due again. `store.close` closes the database.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<OpenSqliteStore> {
  const { logger } = options;
  const path = await preparePrivateFile(options.dataDir, logger);
  const database = await openSqliteDatabase(path, {
    ...defined({ onFatal: options.onFatal }),
    onSet(byMs) {
      if (Math.abs(byMs) < LARGE_MS) return;
      logger.warn({ byMs }, "the machine's clock was set; what waits is due as before");
    },
    onUpgrade: options.onUpgrade ?? ((step) => logUpgrade(logger, step)),
  });
  const { clock } = database;
  const upkeep = createUpkeep(database);
  const { queue, crawlers, hosts, results, ...others } = callThread(database);
  const writePages = createPageWriter(database);
  const store: Store = {
    ...others,
    traits: {
      name: 'embedded',
      shared: false,
      costOfATurn: 'sync',
      // More are written in pieces first, each with a sync of its own.
      writeBytes: ONE_WRITE_BYTES,
      localDisk: options.dataDir,
    },
    crawlers: { ...crawlers, remove: upkeep.sweepsAfter(crawlers.remove) },
    queue: {
      ...queue,
      push: async (request, limits, now) =>
        toReceipt(await queue.push(toRows(request, clock), limits, now), request),
      async turn(lease, work, now) {
        if (looksOnly(work)) return { ...(await queue.look(lease, work, now)), held: [] };
        const outcomes = work.ended ?? [];
        const receipt = await writePages.outcomes(outcomes, (ended) =>
          queue.turn(lease, { ...work, ended }, now),
        );
        const held = receipt.leaseLost
          ? []
          : heldDeliveries(outcomes, receipt.verdicts, toWall(clock, now));
        return { ...receipt, held };
      },
      finish: (outcomes, now) =>
        writePages.outcomes(outcomes, (placed) => queue.finish(placed, now)),
      purge: upkeep.sweepsAfter(queue.purge),
    },
    hosts: {
      ...hosts,
      longest: (crawlerId, limit) =>
        longestHosts((after) => hosts.queuePart(crawlerId, after), limit),
    },
    results: {
      ...results,
      put: (scope, record, now, expiresAt) =>
        writePages.record(record, (placed) => results.put(scope, placed, now, expiresAt)),
    },
    rates: createRates(),
    // A disk that is full answers reads.
    ping: async () => void (await database.call(database.isRefused ? 'tryWrite' : 'ping', [])),
    maintain: upkeep.maintain,
    close: () => database.close(),
  };
  return { store, clock, query: database.query, database, path, backup: database.backup };
}

function looksOnly({ ended = [], started = [], settled = [], deliveries }: TurnWork): boolean {
  return deliveries === undefined && [ended, started, settled].every(({ length }) => length === 0);
}

/** The aggregates whose calls run in the database's thread. */
function callThread(database: Pick<SqliteDatabase, 'call'>): ThreadStore {
  const remote = Object.entries(aggregates).map(([aggregate, methods]) => {
    const calls = Object.keys(methods).map((name) => {
      const operation = `${aggregate}.${name}`;
      return [name, (...args: readonly unknown[]) => database.call(operation, args)] as const;
    });
    return [aggregate, Object.fromEntries(calls)] as const;
  });
  // `aggregates` has exactly the operations of the store, which the compiler checks there.
  return Object.fromEntries(remote) as unknown as ThreadStore;
}
