import { backup, DatabaseSync } from 'node:sqlite';
import {
  type MessagePort,
  parentPort,
  receiveMessageOnPort,
  workerData,
} from 'node:worker_threads';
import { DomainError } from '../../../domain/errors.ts';
import { voidLeases } from '../lease.ts';
import { migrate } from '../migrations.ts';
import { dropAllUnfinished } from '../pages.ts';
import { createSql, type Sql } from '../sql.ts';
import {
  type Answer,
  type BackupAnswer,
  type BackupRequest,
  type BatchMessage,
  type CallMessage,
  toErrorMessage,
} from './messages.ts';
import { operations } from './operations.ts';

// The database runs in this thread, so that neither a sync to disk nor a large purge stalls the
// service. All calls that arrive while a batch is committed share the next transaction, which is one
// sync to disk for all of them.

const MAX_BATCH = 1_000;

/**
 * Pages of one step of a backup, 400 KB. Between two steps the calls of clients get their turn; what
 * they write meanwhile is in the backup, too.
 */
const BACKUP_PAGES = 100;

// FAST overwrites deleted content where that costs no extra writes: secrets and headers, which are
// small. Overwriting freed pages as well makes the deletion of stored bodies four times as slow.
function open(path: string): DatabaseSync {
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
      PRAGMA wal_autocheckpoint = 2000;
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
  migrate(database);
  return database;
}

function perform(sql: Sql, { id, operation, args }: CallMessage): Answer {
  const run = operations.get(operation);
  if (run === undefined) throw new Error(`there is no operation ${operation}`);
  sql.exec('SAVEPOINT call');
  try {
    const value = run(sql, ...(args as never[]));
    sql.exec('RELEASE call');
    return { id, value };
  } catch (error) {
    sql.exec('ROLLBACK TO call');
    sql.exec('RELEASE call');
    return { id, error: toErrorMessage(error) };
  }
}

/** Runs the calls in one transaction. */
function performBatch(sql: Sql, calls: readonly CallMessage[]): BatchMessage {
  let begun = false;
  try {
    const before = countChanges(sql);
    sql.exec('BEGIN');
    begun = true;
    const answers = calls.map((call) => perform(sql, call));
    sql.exec('COMMIT');
    return { answers, committed: countChanges(sql) !== before };
  } catch (error) {
    // The whole batch was rolled back, so every call in it fails.
    const failure = toErrorMessage(error);
    if (begun) tryRollback(sql);
    return { answers: calls.map(({ id }) => ({ id, error: failure })), committed: false };
  }
}

function countChanges(sql: Sql): number {
  return Number(sql.get('SELECT total_changes() AS n')?.n);
}

function tryRollback(sql: Sql): void {
  try {
    sql.exec('ROLLBACK');
  } catch {
    // A failed COMMIT may have rolled back by itself.
  }
}

/**
 * Moves what was written into the database, as SQLite does by itself after 8 MB, which then takes
 * as long as one write of 8 MB.
 */
function checkpoint(sql: Sql): void {
  try {
    sql.exec('PRAGMA wal_checkpoint(PASSIVE)');
  } catch {
    // The next one takes it along.
  }
}

async function copyTo(
  port: MessagePort,
  database: DatabaseSync,
  { backup: id, path }: BackupRequest,
): Promise<void> {
  const answer = (message: BackupAnswer): void => port.postMessage(message);
  try {
    await backup(database, path, {
      rate: BACKUP_PAGES,
      progress: ({ totalPages: total, remainingPages }) =>
        answer({ backup: id, copied: total - remainingPages, total }),
    });
    answer({ backup: id, done: true });
  } catch (error) {
    answer({ backup: id, error: toErrorMessage(error) });
  }
}

type Received = CallMessage | BackupRequest | 'close';

function serve(port: MessagePort, database: DatabaseSync): void {
  const sql = createSql(database);
  sql.exec('BEGIN');
  voidLeases(sql, new Date());
  dropAllUnfinished(sql);
  sql.exec('COMMIT');
  let copying = Promise.resolve();
  port.on('message', (first: Received) => {
    const calls: CallMessage[] = [];
    let closes = false;
    let message: Received | undefined = first;
    while (message !== undefined) {
      if (message === 'close') closes = true;
      else if ('backup' in message) {
        const request = message;
        copying = copying.then(() => copyTo(port, database, request));
      } else calls.push(message);
      if (calls.length >= MAX_BATCH) break;
      message = receiveMessageOnPort(port)?.message as Received | undefined;
    }
    if (calls.length > 0) port.postMessage(performBatch(sql, calls));
    if (calls.some(({ operation }) => operation === 'pages.writePieces')) checkpoint(sql);
    if (closes) {
      database.close();
      port.close();
    }
  });
  port.postMessage('open');
}

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
const { path } = workerData as { path: string };
try {
  serve(port, open(path));
} catch (error) {
  port.postMessage({ refused: toErrorMessage(error) });
  port.close();
}
