import { Gauge, type Registry } from 'prom-client';

/** The backups of the embedded database. */
export interface MeasuredBackups {
  /** Time between scheduled ones, in milliseconds; 0 when none are scheduled. */
  readonly everyMs: number;
  /** The newest first. */
  list(): Promise<readonly { readonly madeAt: Date }[]>;
}

/** Makes the gauges of when the newest backup was made, and how often one is to be made. */
export function createBackupGauges(registry: Registry, { everyMs, list }: MeasuredBackups): void {
  const registers = [registry];
  new Gauge({
    name: 'queued_crawler_last_backup_timestamp_seconds',
    help: 'When the newest backup in the folder of backups was made; 0 for never.',
    registers,
    async collect() {
      // A folder that cannot be read has no backup to count on.
      const [newest] = await list().catch(() => []);
      this.set((newest?.madeAt.getTime() ?? 0) / 1_000);
    },
  });
  new Gauge({
    name: 'queued_crawler_backup_interval_seconds',
    help: 'Time between backups that the service makes by itself; 0 when it makes none.',
    registers,
  }).set(everyMs / 1_000);
}
