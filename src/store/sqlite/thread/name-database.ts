import { resolve } from 'node:path';

/** SQLITE_IOERR and SQLITE_FULL. */
const DISK = 'its disk is full or has failed, free space there';
/** SQLITE_CORRUPT. */
const DAMAGED = 'it is damaged, restore a backup by `queued-crawler restore FILE --replace`';
/** SQLITE_NOTADB. */
const FOREIGN =
  'it is damaged or not a database, move it away with its -wal, and restore a backup by `queued-crawler restore FILE`';

/** What is wrong and what helps, by primary result code of SQLite. */
const HELP: Readonly<Record<number, string>> = { 10: DISK, 11: DAMAGED, 13: DISK, 26: FOREIGN };

/** Adds to the message of an error of SQLite which database it is about, and what helps. */
export function nameDatabase(error: unknown, path: string): void {
  if (!(error instanceof Error && 'errcode' in error)) return;
  // The lowest byte of a result code is its primary code.
  const help = HELP[Number(error.errcode) & 0xff];
  const file = resolve(path);
  // All calls of a batch have the same error.
  if (help === undefined || error.message.includes(file)) return;
  error.message += `: ${file}: ${help}`;
}
