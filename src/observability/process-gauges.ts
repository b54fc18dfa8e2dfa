import { statfs } from 'node:fs/promises';
import { Gauge, type Registry } from 'prom-client';
import { databaseAnswers } from './database-answers.ts';

/** What the process depends on. */
export interface MeasuredProcess {
  readonly version: string;
  readonly role: string;
  readonly database: 'embedded' | 'mongodb';
  /** Folder of the embedded database. */
  readonly dataDir: string;
  /** Bytes of its disk below which pushes are refused. */
  readonly minFreeBytes: number;
  /** Resolves when the database answers. */
  readonly ping: () => Promise<void>;
}

/** Makes the gauges of what the process is and depends on. */
export function createProcessGauges(registry: Registry, measured: MeasuredProcess): void {
  const { version, role, database, dataDir, minFreeBytes, ping } = measured;
  const registers = [registry];
  new Gauge({
    name: 'queued_crawler_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version', 'role', 'database'],
    registers,
  }).set({ version, role, database }, 1);
  new Gauge({
    name: 'queued_crawler_database_up',
    help: 'Whether the database answered within two seconds, and takes writes as far as is known.',
    registers,
    async collect() {
      this.set(Number(await databaseAnswers(ping)));
    },
  });
  if (database !== 'embedded') return;
  new Gauge({
    name: 'queued_crawler_disk_free_bytes',
    help: 'What the service may still write to the disk of DATA_DIR.',
    registers,
    async collect() {
      try {
        const { bavail, bsize } = await statfs(dataDir);
        this.set(bavail * bsize);
      } catch {
        // A disk that is gone must not take the other measurements with it.
        this.remove();
      }
    },
  });
  new Gauge({
    name: 'queued_crawler_disk_min_free_bytes',
    help: 'MIN_FREE_BYTES: with less free, pushes are refused and crawls wait.',
    registers,
  }).set(minFreeBytes);
}
