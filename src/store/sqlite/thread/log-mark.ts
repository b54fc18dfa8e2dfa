import {
  closeSync,
  constants,
  openSync,
  readFileSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DomainError } from '../../../domain/errors.ts';
import type { Sql } from '../sql.ts';

// SQLite takes a write-ahead log that is missing, damaged or cut for an older one, and starts
// without what it held. So each batch adds one to the number in the table `commits`, and the last
// number that reached the disk is also kept in a file outside the log.

/** The file next to the database: the number, and the inode of the database that it is about. */
const markOf = (path: string): string => `${path}-mark`;

/** So that a shorter mark overwrites a longer one. */
const MARK_LENGTH = 48;

/** Counts the batches of a database. */
export interface LogMark {
  /**
   * Counts the batch whose transaction is open. Throws when the database is not at its path any more:
   * what it writes would be lost.
   */
  count(): void;
  /**
   * Writes the last number, when it is on the disk. Does not wait for the disk itself: a mark that
   * is too old refuses nothing.
   */
  write(): void;
  close(): void;
}

/** Opens the mark of an open database. */
export function openLogMark(path: string, sql: Sql): LogMark {
  const { dev, ino } = statSync(path);
  const mark = openSync(markOf(path), constants.O_RDWR | constants.O_CREAT, 0o600);
  let commits = 0;
  return {
    count() {
      const found = stateOf(path);
      if (found?.ino !== ino || found.dev !== dev) throw movedAway(path);
      commits = Number(sql.get('UPDATE commits SET n = n + 1 RETURNING n')?.n);
    },
    write: () => void writeSync(mark, `${commits} ${ino}`.padEnd(MARK_LENGTH), 0),
    close: () => closeSync(mark),
  };
}

/** Undefined for what is not there, or is not reached. */
function stateOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** SQLite itself reports this only without a write-ahead log. */
const SQLITE_READONLY_DBMOVED = 1_032;

function movedAway(path: string): Error {
  const text = `The database was removed or replaced while in use: ${resolve(path)} is not the open file any more. Nothing is written until it is put back; otherwise stop the service and restore a backup.`;
  return Object.assign(new Error(text), { errcode: SQLITE_READONLY_DBMOVED });
}

/**
 * Throws when the database lacks batches that its mark names. It changes nothing, so that a log can
 * be put back. A copy of a database has another inode, and its mark may be newer than its log.
 */
export function assertLogIsWhole(path: string): void {
  const [commits = 0, ino] = readMark(path);
  if (!(commits > 0) || ino !== statSync(path).ino) return;
  const found = commitsIn(path);
  if (found === undefined || found >= commits) return;
  throw new DomainError(
    'failed_precondition',
    'log_lost',
    `What was written last is lost: ${path}-wal is missing, damaged or cut. Put it back, or restore a backup (npm run restore). To start with what is left, remove ${markOf(path)}.`,
  );
}

function readMark(path: string): number[] {
  try {
    return readFileSync(markOf(path), 'utf8').trim().split(' ').map(Number);
  } catch {
    // A database of an older version, or one whose loss was accepted.
    return [];
  }
}

/** The number that the database and its log have; undefined while another process uses them. */
function commitsIn(path: string): number | undefined {
  // Closing a connection that may write would move the log into the database.
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return Number(database.prepare('SELECT n FROM commits').get()?.['n']);
  } catch (error) {
    // The whole schema was in the log.
    if (error instanceof Error && /no such table/.test(error.message)) return 0;
    if (error instanceof Error && /locked|busy/i.test(error.message)) return undefined;
    throw error;
  } finally {
    database.close();
  }
}
