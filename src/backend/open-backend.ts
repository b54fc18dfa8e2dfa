import type { Config } from '../config/config.ts';
import { type Clock, systemClock } from '../domain/clock.ts';
import type { Logger } from '../domain/logger.ts';
import { onServerTime } from '../scheduler/agenda/on-server-time.ts';
import type { SchedulerBackend } from '../scheduler/agenda/task-documents.ts';
import type { Store } from '../store/store.ts';
import { openServerTime, serverClock } from './server-time.ts';

/** The database: the store, and the documents of the scheduler's tasks. */
export interface Backend {
  readonly store: Store;
  readonly scheduler: SchedulerBackend;
  /** The time that all processes on the database go by. */
  readonly clock: Clock;
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
 * the database is lost for good.
 */
export async function openBackend(
  config: Pick<Config, 'mongodbUri' | 'dataDir'>,
  logger: Logger,
  onFatal: (error: Error) => void,
): Promise<Backend> {
  // Imported when chosen: a driver that is not used costs start-up time and memory.
  if (config.mongodbUri !== '') {
    const { openMongoStore } = await import('../store/mongo/mongo-store.ts');
    const { createMongoBackend } = await import('../scheduler/mongo/backend.ts');
    const { store, db } = await openMongoStore({ uri: config.mongodbUri, logger, onFatal });
    try {
      const read = async () => (await db.command({ hello: 1 })).localTime as Date;
      const time = await openServerTime(read, logger);
      return {
        store,
        scheduler: onServerTime(createMongoBackend(db), time),
        clock: serverClock(time),
        async close() {
          time.close();
          await store.close();
        },
      };
    } catch (error) {
      await store.close();
      throw error;
    }
  }
  const { openSqliteStore } = await import('../store/sqlite/sqlite-store.ts');
  const { createSqliteBackend } = await import('../scheduler/sqlite/backend.ts');
  const { dataDir } = config;
  const { store, query, path, backup } = await openSqliteStore({ dataDir, logger, onFatal });
  return {
    store,
    scheduler: createSqliteBackend({ query }),
    clock: systemClock,
    embedded: { path, copy: backup },
    close: () => store.close(),
  };
}
