import { backup, DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import { DomainError } from '../../../domain/errors.ts';
import type { UpgradeStep } from '../../upgrade-step.ts';
import { voidLeases } from '../lease.ts';
import { migrate } from '../migrations.ts';
import { dropAllUnfinished } from '../pages.ts';
import { endHolds } from '../results.ts';
import { readServiceTime } from '../saved-time.ts';
import { createSql } from '../sql.ts';
import { createBatches } from './batches.ts';
import {
  type BackupAnswer,
  type BackupRequest,
  type CallMessage,
  toErrorMessage,
} from './database-messages.ts';
import { startDiskSync } from './disk-sync.ts';
import { assertLogIsWhole, openLogMark } from './log-mark.ts';
import { nameDatabase } from './name-database.ts';

// The database runs in this thread, so that neither a sync to disk nor a large purge stalls the
// service. All calls that arrive while a batch is made durable share the next transaction, which is
// one sync to disk for all of them.

/**
 * Pages of one step of a backup, 400 KB. Between two steps the calls of clients get their turn;
 * what they write between two steps is in the backup, too.
 */
const BACKUP_PAGES = 100;
/** While a call writes, SQLite refuses a step. Node repeats it, but fails if it is the first one. */
const FIRST_STEP = { tries: 500, waitMs: 20 };
/** Result codes of a step that was refused (SQLITE_BUSY, SQLITE_LOCKED), and 0, which Node reports for them. */
const MET_A_WRITER: readonly unknown[] = [0, 5, 6];

// FAST overwrites deleted content where that costs no extra writes: secrets and headers, which are
// small. Overwriting freed pages as well makes the deletion of stored bodies four times as slow.
function open(path: string, onStep: (step: UpgradeStep) => void): DatabaseSync {
  assertLogIsWhole(path);
  const database = new DatabaseSync(path, { timeout: 1_000 });
  try {
    database.exec(`
      PRAGMA auto_vacuum = INCREMENTAL;
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -16000;
      PRAGMA journal_size_limit = 67108864;
      PRAGMA wal_autocheckpoint = 0;
      PRAGMA secure_delete = FAST;
      BEGIN IMMEDIATE; COMMIT;
    `);
  } catch (error) {
    database.close();
    if (error instanceof Error && /locked|busy/i.test(error.message)) {
      throw new DomainError(
        'failed_precondition',
        'data_dir_in_use',
        'Another process uses this DATA_DIR. Stop it, choose another DATA_DIR, or set MONGODB_URI to share the work.',
      );
    }
    throw error;
  }
  migrate(database, onStep);
  // From now on the log is synced in parallel with the database, see batches.ts.
  database.exec('PRAGMA synchronous = NORMAL');
  return database;
}

/**
 * Ends a copy that is whole though pages seem to be left. SQLite ends a copy also when the database
 * has shrunk below what was copied. The number of pages left is negative then, and Node, which
 * waits for 0, repeats the last step without end.
 */
class CopyIsWhole extends Error {}

async function copyTo(
  port: MessagePort,
  database: DatabaseSync,
  { backup: id, path }: BackupRequest,
): Promise<void> {
  const answer = (message: BackupAnswer): void => port.postMessage(message);
  const copy = (): Promise<number> =>
    backup(database, path, {
      rate: BACKUP_PAGES,
      progress: ({ totalPages: total, remainingPages }) => {
        if (remainingPages < 0) throw new CopyIsWhole();
        answer({ backup: id, copied: total - remainingPages, total });
      },
    });
  for (let tried = 1; ; tried++) {
    try {
      await copy();
      return answer({ backup: id, done: true });
    } catch (error) {
      if (error instanceof CopyIsWhole) return answer({ backup: id, done: true });
      if (tried === FIRST_STEP.tries || !metWriter(error)) {
        return answer({ backup: id, error: toErrorMessage(ofCopy(error)) });
      }
    }
    await sleep(FIRST_STEP.waitMs);
  }
}

/** SQLITE_FULL is the disk of the copy: of the database it only reads. */
function ofCopy(error: unknown): unknown {
  const isFull = error instanceof Error && 'errcode' in error && error.errcode === 13;
  if (!isFull) return error;
  return new DomainError('unavailable', 'backup_no_room', 'The disk of the copy is full.');
}

function metWriter(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && MET_A_WRITER.includes(error.errcode);
}

type Received = CallMessage | BackupRequest | 'close';

function serve(port: MessagePort, database: DatabaseSync, path: string): void {
  const sql = createSql(database);
  const startMs = Math.max(readServiceTime(sql), Date.now());
  sql.aheadMs = startMs - Date.now();
  sql.exec('BEGIN');
  voidLeases(sql, new Date(startMs));
  endHolds(sql);
  dropAllUnfinished(sql);
  sql.exec('COMMIT');
  const disk = startDiskSync(path);
  const mark = openLogMark(path, sql);
  const batches = createBatches({
    sql,
    disk,
    mark,
    answer(message) {
      for (const each of message.answers) if ('error' in each) nameDatabase(each.error.cause, path);
      port.postMessage(message);
    },
  });
  let copying = Promise.resolve();

  async function close(): Promise<void> {
    await batches.settled();
    database.close();
    mark.close();
    await disk.close();
    port.close();
  }

  port.on('message', (first: readonly Received[]) => {
    const calls: CallMessage[] = [];
    let closes = false;
    let messages: readonly Received[] | undefined = first;
    while (messages !== undefined) {
      for (const message of messages) {
        if (message === 'close') closes = true;
        else if ('backup' in message) copying = copying.then(() => copyTo(port, database, message));
        else calls.push(message);
      }
      messages = receiveMessageOnPort(port)?.message as readonly Received[] | undefined;
    }
    if (calls.length > 0) batches.take(calls);
    if (closes) void close();
  });
  port.postMessage({ startMs });
}

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
const { path } = workerData as { path: string };
try {
  const onStep = (upgrade: UpgradeStep): void => port.postMessage({ upgrade });
  serve(port, open(path, onStep), path);
} catch (error) {
  nameDatabase(error, path);
  port.postMessage({ refused: toErrorMessage(error) });
  port.close();
}
