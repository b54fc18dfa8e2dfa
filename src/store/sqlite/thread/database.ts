import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { createBatchedPort } from '../../../domain/batched-port.ts';
import { createMachineClock, type ServiceClock } from '../../../domain/clock.ts';
import { type DomainError, databaseUnavailable } from '../../../domain/errors.ts';
import { createTransientMap } from '../../../domain/transient-map.ts';
import type { UpgradeStep } from '../../upgrade-step.ts';
import type { SqlRow } from '../sql.ts';
import {
  type BackupAnswer,
  type BackupRequest,
  type BatchMessage,
  type CallMessage,
  type ErrorMessage,
  toError,
} from './database-messages.ts';

/** How long calls wait for one another in a busy iteration of the event loop, in milliseconds. */
const LONGEST_WAIT_MS = 1.5;

/** The embedded database, in a thread of its own. */
export interface SqliteDatabase {
  /** Continues at or after the service time of the last write to the database. */
  readonly clock: ServiceClock;
  /**
   * Runs an operation of `operations.ts`. Its writes are durable when the promise resolves. The memory in
   * `transfer` moves to the other thread.
   */
  call(
    operation: string,
    args: readonly unknown[],
    transfer?: readonly ArrayBuffer[],
  ): Promise<unknown>;
  /** Runs one statement. Its writes are durable when the promise resolves. */
  query(sql: string, values: readonly unknown[]): Promise<SqlRow[]>;
  /**
   * Copies the database to a file while it is in use, and reports pages copied and pages in all. The
   * copy is the database as it is when the promise resolves.
   */
  backup(path: string, onProgress: (copied: number, total: number) => void): Promise<void>;
  /** Number of batches that wrote; each cost one sync to disk. */
  readonly commits: number;
  /** Whether the latest write failed because of the disk. */
  readonly isRefused: boolean;
  /** Number of calls so far. */
  readonly begun: number;
  /** Closes the database after all earlier calls. */
  close(): Promise<void>;
}

type Opened = { readonly startMs: number } | { readonly refused: ErrorMessage };
type Upgrade = { readonly upgrade: UpgradeStep };

/** What is told of a database; all are optional. */
export interface DatabaseEvents {
  /** The thread has ended by itself; every later call rejects with `unavailable`. */
  readonly onFatal?: (error: Error) => void;
  /** The machine's clock was set. */
  readonly onSet?: (byMs: number) => void;
  /** A step begins. It takes minutes in a large database. */
  readonly onUpgrade?: (step: UpgradeStep) => void;
}
type BackupProgress = (copied: number, total: number) => void;

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Opens the file; creates or migrates it first. Throws `failed_precondition` when another process
 * has it open or a newer program has written it.
 */
export async function openSqliteDatabase(
  path: string,
  { onFatal, onSet, onUpgrade }: DatabaseEvents = {},
): Promise<SqliteDatabase> {
  const worker = new Worker(new URL('./database-worker.ts', import.meta.url), {
    workerData: { path },
    // Objects of this thread live for one batch. Without the limit V8 would let its heap grow with
    // the memory of the machine.
    resourceLimits: { maxYoungGenerationSizeMb: 8 },
  });
  const exited = once(worker, 'exit');
  const opened = await new Promise<Opened>((resolve, reject) => {
    worker.on('message', function take(message: Opened | Upgrade) {
      if ('upgrade' in message) {
        onUpgrade?.(message.upgrade);
        return;
      }
      worker.off('message', take);
      resolve(message);
    });
    worker.once('error', reject);
  });
  if ('refused' in opened) {
    await exited;
    const { cause } = opened.refused;
    throw cause instanceof Error ? cause : toError(opened.refused);
  }
  const clock = createMachineClock(opened.startMs, onSet);

  /** Calls by number that wait for their answer. */
  const waiting = createTransientMap<number, Pending>();
  const backups = new Map<number, Pending & { readonly onProgress: BackupProgress }>();
  const calls = createBatchedPort<CallMessage | BackupRequest | 'close'>(worker, {
    longestWaitMs: LONGEST_WAIT_MS,
  });
  let nextId = 0;
  let commits = 0;
  let isRefused = false;
  let closing = false;
  let ended = false;

  worker.on('message', (message: BatchMessage | BackupAnswer) => {
    if ('backup' in message) {
      takeBackupAnswer(message);
      return;
    }
    const { answers, committed, refused } = message;
    if (committed) commits += 1;
    if (committed || refused) isRefused = refused;
    for (const answer of answers) {
      const pending = waiting.get(answer.id);
      waiting.delete(answer.id);
      if ('error' in answer) pending?.reject(toError(answer.error));
      else pending?.resolve(answer.value);
    }
  });
  function takeBackupAnswer(message: BackupAnswer): void {
    const found = backups.get(message.backup);
    if ('copied' in message) {
      found?.onProgress(message.copied, message.total);
      return;
    }
    backups.delete(message.backup);
    if ('error' in message) found?.reject(toError(message.error));
    else found?.resolve(undefined);
  }
  const end = (error: Error): void => {
    ended = true;
    for (const calls of [waiting, backups]) {
      for (const call of calls.values()) call.reject(gone(error));
      calls.clear();
    }
    if (!closing) onFatal?.(error);
  };
  worker.once('error', end);
  worker.once('exit', () => {
    if (!ended) end(new Error('the thread of the database has ended'));
  });

  function call(
    operation: string,
    args: readonly unknown[],
    transfer?: readonly ArrayBuffer[],
  ): Promise<unknown> {
    if (ended || closing) return Promise.reject(gone());
    const id = nextId++;
    const { aheadMs } = clock;
    const nowMs = clock.now().getTime();
    calls.post({ id, operation, args, nowMs, aheadMs }, transfer);
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  return {
    clock,
    call,
    query: (sql, values) => call('query', [sql, values]) as Promise<SqlRow[]>,
    backup(path, onProgress) {
      if (ended || closing) return Promise.reject(gone());
      const request: BackupRequest = { backup: nextId++, path };
      calls.post(request);
      return new Promise((resolve, reject) => {
        backups.set(request.backup, { resolve: () => resolve(), reject, onProgress });
      });
    },
    get begun() {
      return nextId;
    },
    get isRefused() {
      return isRefused;
    },
    get commits() {
      return commits;
    },
    async close() {
      if (closing) return void (await exited);
      closing = true;
      if (!ended) calls.post('close');
      await exited;
    },
  };
}

function gone(cause?: Error): DomainError {
  return databaseUnavailable('The database is closed.', cause);
}
