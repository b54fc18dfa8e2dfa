import { closeSync, openSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

/** The files of a database: its write-ahead log, and the pages themselves. */
export type SyncedFile = 'log' | 'database';

/** Makes what was written durable, in a thread of its own. */
export interface DiskSync {
  /**
   * Resolves when everything that was written to the file before the call is on the disk. One call
   * at a time. The process does not survive a sync that fails: what the file holds is unknown then.
   */
  sync(file: SyncedFile): Promise<void>;
  /** Ends the thread. To be called when the database is closed, whose locks it would release. */
  close(): Promise<void>;
}

/** Starts the thread for a database whose files exist. */
export function startDiskSync(path: string): DiskSync {
  // They stay open: SQLite's locks on a file end as soon as its process closes any descriptor of it. They
  // are opened here, because the thread may start after the log is gone: a close at once removes it.
  const descriptors: Record<SyncedFile, number> = {
    log: openSync(`${path}-wal`, 'r+'),
    database: openSync(path, 'r+'),
  };
  const worker = new Worker(new URL('./sync-worker.ts', import.meta.url), {
    workerData: descriptors,
    resourceLimits: { maxYoungGenerationSizeMb: 1 },
  });
  let synced: (() => void) | undefined;
  worker.on('message', () => synced?.());
  worker.on('error', (error) => {
    throw error;
  });
  return {
    sync(file) {
      const { promise, resolve } = Promise.withResolvers<void>();
      synced = resolve;
      worker.postMessage(file);
      return promise;
    },
    async close() {
      await worker.terminate();
      for (const descriptor of Object.values(descriptors)) closeSync(descriptor);
    },
  };
}
