import { fdatasyncSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type { SyncedFile } from './disk-sync.ts';

// The program of the thread that waits for the disk, so that the database's thread does not.

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
const descriptors = workerData as Readonly<Record<SyncedFile, number>>;

port.on('message', (file: SyncedFile) => {
  fdatasyncSync(descriptors[file]);
  port.postMessage(file);
});
