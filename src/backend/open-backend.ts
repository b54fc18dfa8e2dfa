import { type Config, ConfigError } from '../config/config.ts';
import type { ServiceClock } from '../domain/clock.ts';
import type { Logger } from '../domain/logger.ts';
import type { SchedulerBackend } from '../scheduler/agenda/task-documents.ts';
import { uriRefusal } from '../store/mongo/uri-refusal.ts';
import type { Store } from '../store/store.ts';

/** The database: the store, and the documents of the scheduler's tasks. */
export interface Backend {
  readonly store: Store;
  readonly scheduler: SchedulerBackend;
  /** The service time that all processes on the database share. */
  readonly clock: ServiceClock;
  /** The embedded database; MongoDB has ways of its own to be backed up. */
  readonly embedded?: {
    readonly path: string;
    /** Copies it to a file while it is in use. */
    copy(path: string, onProgress: (copied: number, total: number) => void): Promise<void>;
  };
  close(): Promise<void>;
}

/**
 * Opens MongoDB when the configuration names one, else the embedded database. Calls `onFatal` when
 * the database is lost for good. `signal` ends a wait for other processes; the promise then rejects.
 */
export async function openBackend(
  config: Pick<Config, 'mongodbUri' | 'dataDir' | 'shutdownSeconds'>,
  logger: Logger,
  onFatal: (error: Error) => void,
  signal?: AbortSignal,
): Promise<Backend> {
  // Imported when chosen: a driver that is not used costs start-up time and memory.
  if (config.mongodbUri !== '') {
    const { openMongoStore } = await import('../store/mongo/mongo-store.ts');
    const { createMongoBackend } = await import('../scheduler/mongo/backend.ts');
    const { longestSilence } = await import('../store/mongo/other-versions.ts');
    const waitTimes = { silentMs: longestSilence(config.shutdownSeconds) };
    const options = { uri: config.mongodbUri, logger, onFatal, waitTimes, signal };
    const { store, clock, db } = await openMongoStore(options).catch(nameSetting);
    const scheduler = createMongoBackend(db);
    return { store, scheduler, clock, close: () => store.close() };
  }
  const { openSqliteStore } = await import('../store/sqlite/sqlite-store.ts');
  const { createSqliteBackend } = await import('../scheduler/sqlite/backend.ts');
  const { dataDir } = config;
  const opened = await openSqliteStore({ dataDir, logger, onFatal });
  const { store, clock, query, path, backup } = opened;
  return {
    store,
    scheduler: createSqliteBackend({ query, now: clock.now }),
    clock,
    embedded: { path, copy: backup },
    close: () => store.close(),
  };
}

/** Names the setting of a database that cannot be used. Other refusals name it by themselves. */
function nameSetting(error: unknown): never {
  const refusal = uriRefusal(error);
  if (refusal === undefined) throw error;
  throw new ConfigError(`MONGODB_URI: ${refusal}`, { cause: error });
}
