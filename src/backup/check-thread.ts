import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { errorText } from '../domain/error-text.ts';
import type { BackupContent } from './check-backup.ts';

/** What the check found. */
export type CheckAnswer = BackupContent | { readonly fault: string };

const TABLES = ['accounts', 'crawlers', 'jobs', 'results', 'deliveries'] as const;

function check(path: string): CheckAnswer {
  using database = new DatabaseSync(path, { readOnly: true });
  const [first] = database.prepare('PRAGMA integrity_check(1)').all();
  const verdict = String(first?.['integrity_check']);
  if (verdict !== 'ok') return { fault: verdict };
  const count = (table: string): number =>
    Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n']);
  const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
  const counts = Object.fromEntries(TABLES.map((table) => [table, count(table)]));
  return { version, ...(counts as Record<(typeof TABLES)[number], number>) };
}

const { path } = workerData as { path: string };
try {
  parentPort?.postMessage(check(path));
} catch (error) {
  parentPort?.postMessage({ fault: errorText(error) } satisfies CheckAnswer);
}
