import { existsSync } from 'node:fs';
import { chmod, copyFile, rename, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { DomainError } from '../domain/errors.ts';
import { makeFolder } from '../domain/make-folder.ts';
import { databaseFile } from '../store/sqlite/private-file.ts';
import { beginResultSeries } from '../store/sqlite/result-order.ts';
import { openUnused } from './backup-folder.ts';
import { type BackupContent, checkBackup } from './check-backup.ts';
import { assertReadable, assertWritable } from './usable-path.ts';
import { sync } from './write-backup.ts';

/**
 * Puts a backup into DATA_DIR, after it was checked, there and in place. Throws `invalid` when a path
 * cannot be used. Throws `failed_precondition` when it is not whole, when the service runs, or when
 * there is a database and `replace` is not set; a replaced one is kept next to it. Returns where,
 * and what the backup holds.
 */
export async function restoreBackup(options: {
  readonly file: string;
  readonly dataDir: string;
  readonly replace: boolean;
}): Promise<{ readonly content: BackupContent; readonly kept: string | undefined }> {
  const { file, dataDir } = options;
  await assertReadable(file);
  await checkBackup(file);
  await makeFolder(dataDir);
  const path = databaseFile(dataDir);
  await assertWritable(path);
  const isThere = isDatabaseThere(path);
  if (isThere && !options.replace) {
    throw new DomainError(
      'failed_precondition',
      'data_dir_not_empty',
      `There is a database in ${dataDir}. Choose an empty folder, or --replace it; it is kept next to the restored one.`,
    );
  }
  const part = `${path}.restore`;
  let kept: string | undefined;
  try {
    await copyFile(file, part);
    await chmod(part, 0o600);
    makeShrinkable(part);
    const content = await checkBackup(part);
    beginResultSeries(part);
    await sync(part);
    if (isThere) {
      kept = `${path}.before-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
      await rename(path, kept);
      // It was closed by `isDatabaseThere`, which leaves nothing in them.
      for (const companion of ['-wal', '-shm', '-mark'])
        await rm(path + companion, { force: true });
    }
    await rename(part, path);
    await sync(dataDir);
    return { content, kept };
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** Rewrites a database of a version that could not give room back to the system. */
function makeShrinkable(path: string): void {
  using database = new DatabaseSync(path);
  const mode = database.prepare('PRAGMA auto_vacuum').get()?.['auto_vacuum'];
  if (mode === 0) database.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM;');
}

/** Whether there is a database; all of it is in its file then. Throws when a process uses it. */
function isDatabaseThere(path: string): boolean {
  if (!existsSync(path)) return false;
  using database = openUnused(path);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  return true;
}
