import { Worker } from 'node:worker_threads';
import { DomainError, databaseTooNew } from '../domain/errors.ts';
import { SCHEMA_VERSION } from '../store/sqlite/migrations.ts';
import type { CheckAnswer } from './check-thread.ts';

/** What a backup holds. */
export interface BackupContent {
  /** Version of its schema. */
  readonly version: number;
  readonly accounts: number;
  readonly crawlers: number;
  readonly jobs: number;
  readonly results: number;
  readonly deliveries: number;
}

/**
 * Checks that a file is a whole database of this program or of an older one, in a thread of its
 * own, since it reads all of it. Throws `failed_precondition` when it is not.
 */
export async function checkBackup(path: string): Promise<BackupContent> {
  const worker = new Worker(new URL('./check-thread.ts', import.meta.url), {
    workerData: { path },
  });
  const answer = await new Promise<CheckAnswer>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the check ended without an answer')));
  });
  if ('fault' in answer) {
    const message = `${path} is not a whole database: ${answer.fault}.`;
    throw new DomainError('failed_precondition', 'backup_damaged', message);
  }
  if (answer.version > SCHEMA_VERSION) throw databaseTooNew(answer.version, SCHEMA_VERSION);
  return answer;
}
