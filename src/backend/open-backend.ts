import type { Config } from '../config/config.ts';
import type { Logger } from '../domain/logger.ts';
import type { SchedulerBackend } from '../scheduler/agenda/task-documents.ts';
import type { Store } from '../store/store.ts';

/** The database: what the service keeps, and where its clock keeps its tasks. */
export interface Backend {
  readonly store: Store;
  readonly clock: SchedulerBackend;
  close(): Promise<void>;
}

/** Opens MongoDB when the configuration names one, else the embedded database. `onFatal` is told when it is lost for good. */
export async function openBackend(
  config: Pick<Config, 'mongodbUri' | 'dataDir'>,
  logger: Logger,
  onFatal: (error: Error) => void,
): Promise<Backend> {
  // Loaded when chosen: each driver costs the other's users start-up time and memory.
  if (config.mongodbUri !== '') {
    const { openMongoStore } = await import('../store/mongo/mongo-store.ts');
    const { createMongoBackend } = await import('../scheduler/mongo/backend.ts');
    const { store, db } = await openMongoStore({ uri: config.mongodbUri, logger });
    return { store, clock: createMongoBackend(db), close: () => store.close() };
  }
  const { openSqliteStore } = await import('../store/sqlite/sqlite-store.ts');
  const { createSqliteBackend } = await import('../scheduler/sqlite/backend.ts');
  const { store, query } = await openSqliteStore({ dataDir: config.dataDir, logger, onFatal });
  return { store, clock: createSqliteBackend({ query }), close: () => store.close() };
}
