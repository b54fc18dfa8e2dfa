import { chmod, open, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Logger } from '../../domain/logger.ts';
import { makeFolder } from '../../domain/make-folder.ts';

/** The file of the database in `DATA_DIR`. */
export function databaseFile(folder: string): string {
  return join(folder, 'queued-crawler.db');
}

/** The files that SQLite keeps next to a database. New ones get the mode of the database itself. */
const COMPANIONS = ['', '-wal', '-shm', '-journal', '-mark'];

/**
 * Creates the folder and the file, readable by this user only, and returns the file's path: a
 * database holds pages, cookies, signing secrets and callback URLs with their passwords. Files
 * that others can read are closed to them. The mode of an existing folder stays, because it may be
 * shared on purpose; the log warns if others may write there and so could replace the file.
 */
export async function preparePrivateFile(
  folder: string,
  logger: Pick<Logger, 'warn'>,
): Promise<string> {
  const path = databaseFile(folder);
  try {
    await makeFolder(folder);
    // Opening for append changes nothing in an existing file.
    await (await open(path, 'a', 0o600)).close();
  } catch (cause) {
    throw new Error(`DATA_DIR is ${resolve(folder)}, which cannot be used`, { cause });
  }
  const { mode, uid } = await stat(folder);
  // Of another's folder, as `fsGroup` of Kubernetes makes it, the group is what lets this process in.
  const others = uid === process.getuid?.() ? 0o022 : 0o002;
  // In a sticky folder, such as /tmp, nobody can replace the files of others.
  if ((mode & others) !== 0 && (mode & 0o1000) === 0) {
    logger.warn({ folder }, 'other users may write to DATA_DIR: chmod 700 it');
  }
  for (const companion of COMPANIONS) await closeToOthers(path + companion, logger);
  return path;
}

async function closeToOthers(path: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) await chmod(path, 0o600);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
    logger.warn(
      { path },
      'other users can read a file of the database, and its mode cannot be changed',
    );
  }
}
