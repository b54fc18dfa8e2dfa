import { backup, DatabaseSync } from 'node:sqlite';
import { errorText } from '../domain/error-text.ts';
import { DomainError } from '../domain/errors.ts';
import { databaseFile } from '../store/sqlite/private-file.ts';
import type { BackupContent } from './check-backup.ts';
import { assertBackupTarget, assertReadable } from './usable-path.ts';
import { type BackupProgress, writeBackup } from './write-backup.ts';

/**
 * Writes a backup of the database in a DATA_DIR that no process uses. Throws `failed_precondition`
 * when one does, and `invalid` when there is no database or the backup cannot be written.
 */
export async function backupFolder(options: {
  readonly dataDir: string;
  readonly file: string;
  readonly onProgress: (progress: BackupProgress) => void;
}): Promise<BackupContent> {
  const path = databaseFile(options.dataDir);
  await assertReadable(path);
  await assertBackupTarget(options.file);
  using database = openUnused(path);
  return await writeBackup(
    (path, onProgress) =>
      backup(database, path, {
        rate: 1_000,
        progress: ({ totalPages: total, remainingPages }) =>
          onProgress(total - remainingPages, total),
      }).then(() => undefined),
    options.file,
    options.onProgress,
  );
}

/** Opens a database that no process uses, and keeps others from it until it is closed. */
export function openUnused(path: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    // A mode that does not create the file.
    database = new DatabaseSync(`file:${encodeURI(path)}?mode=rw`, { timeout: 500 });
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;');
    return database;
  } catch (error) {
    database?.close();
    const text = errorText(error);
    throw /locked|busy/i.test(text)
      ? new DomainError('failed_precondition', 'data_dir_in_use', IN_USE)
      : new DomainError('failed_precondition', 'no_database', `${path}: ${text}.`);
  }
}

const IN_USE = 'A process uses this DATA_DIR.';
