import { fdatasyncSync, openSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type { SyncedFile } from './disk-sync.ts';

// The program of the thread that waits for the disk, so that the database's thread does not.

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
const paths = workerData as Record<SyncedFile, string>;
// They stay open: SQLite's locks on a file end as soon as its process closes any descriptor of it.
const descriptors: Readonly<Record<SyncedFile, number>> = {
  log: openSync(paths.log, 'r+'),
  database: openSync(paths.database, 'r+'),
};

port.on('message', (file: SyncedFile) => {
  fdatasyncSync(descriptors[file]);
  port.postMessage(file);
});
