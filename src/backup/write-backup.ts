import { chmod, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DomainError } from '../domain/errors.ts';
import { type BackupContent, checkBackup } from './check-backup.ts';

/** Copies the database to a file, while it is in use; reports pages copied and pages in all. */
export type CopyDatabase = (
  path: string,
  onProgress: (copied: number, total: number) => void,
) => Promise<void>;

/** What is being done: the copy in pages, then the check. */
export type BackupProgress =
  | { readonly step: 'copy'; readonly copied: number; readonly total: number }
  | { readonly step: 'check' };

/**
 * Writes a backup to `file`, readable by this user only. The file appears under its name when it
 * is whole, checked and on the disk; until then it is `file.part`, which is removed on a failure, with its journal.
 * Throws `unavailable` when its disk is full.
 */
export async function writeBackup(
  copy: CopyDatabase,
  file: string,
  onProgress: (progress: BackupProgress) => void,
): Promise<BackupContent> {
  const part = `${file}.part`;
  try {
    await (await open(part, 'w', 0o600)).close();
    await chmod(part, 0o600);
    await copy(part, (copied, total) => onProgress({ step: 'copy', copied, total }));
    onProgress({ step: 'check' });
    toSingleFile(part);
    const content = await checkBackup(part);
    await sync(part);
    await rename(part, file);
    await sync(dirname(file));
    return content;
  } catch (error) {
    // On a full disk SQLite cannot remove the journal of the copy.
    for (const left of [part, `${part}-journal`]) await rm(left, { force: true });
    if (!isNoSpace(error)) throw error;
    const message = `No space is left in ${dirname(file)} for the backup; what was written of it is removed.`;
    throw new DomainError('unavailable', 'backup_no_room', message, { cause: error });
  }
}

/** SQLITE_FULL of a copy, here or in the thread of the database, or a write of this file that a disk or its quota refuses. */
function isNoSpace(error: unknown): boolean {
  if (error instanceof DomainError) return error.reason === 'backup_no_room';
  if (!(error instanceof Error)) return false;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return code === 'ENOSPC' || code === 'EDQUOT' || errcode === 13;
}

/** The copy says that it has a write-ahead log, as its source does; without one it is one file. */
function toSingleFile(path: string): void {
  using database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = DELETE');
}

/** Waits until a file or the names in a folder are on the disk. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
