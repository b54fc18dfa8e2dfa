import { mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { backupFolder } from '../../../src/backup/backup-folder.ts';
import { type BackupsDeps, createBackups } from '../../../src/backup/backups.ts';
import { fetchBackup } from '../../../src/backup/fetch-backup.ts';
import { createRecordingLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** Backups of a database of 1,000 bytes, whose copies do what `copy` does. */
async function backupsIn(path: string, own: Partial<BackupsDeps> = {}) {
  const database = join(path, 'queued-crawler.db');
  await writeFile(database, Buffer.alloc(1_000));
  const folder = join(path, 'backups');
  await mkdir(folder);
  const backups = createBackups({
    copy: () => Promise.reject(new Error('the disk is full')),
    database,
    folder,
    keep: 2,
    everyMs: 0,
    minFreeBytes: 0,
    logger: createRecordingLogger(),
    ...own,
  });
  return { backups, folder };
}

test('a copy that fails leaves neither its part nor the journal of its part', async () => {
  await using temporary = await temporaryFolder();
  const { backups, folder } = await backupsIn(temporary.path, {
    async copy(path) {
      await writeFile(`${path}-journal`, 'what SQLite leaves on a full disk');
      throw new Error('the disk is full');
    },
  });
  await expect(backups.make()).rejects.toThrow('the disk is full');
  expect(await readdir(folder)).toEqual([]);
});

test('a backup on the disk of the database leaves MIN_FREE_BYTES, else pushes would be refused', async () => {
  await using temporary = await temporaryFolder();
  let copies = 0;
  const { backups } = await backupsIn(temporary.path, {
    // No disk has that much.
    minFreeBytes: 2 ** 52,
    copy() {
      copies += 1;
      return Promise.resolve();
    },
  });
  await expect(backups.make()).rejects.toMatchObject({
    reason: 'backup_no_room',
    message: expect.stringContaining('MIN_FREE_BYTES'),
  });
  expect(copies).toBe(0);
});

test('a backup that is removed while the backups are listed is left out', async () => {
  await using temporary = await temporaryFolder();
  const { backups, folder } = await backupsIn(temporary.path);
  const [kept, gone] = ['queued-crawler-20260101T000000000Z.db', 'queued-crawler-2Z.db'];
  await writeFile(join(folder, kept), 'content');
  // Its name is there and its file is not, as between reading the folder and reading the file.
  await symlink(join(folder, 'nothing'), join(folder, gone));
  expect((await backups.list()).map(({ name }) => name)).toEqual([kept]);
});

test.each(['-mark', '-wal'])(
  'a backup does not replace a database that a service uses, as %s next to it tells',
  async (companion) => {
    await using temporary = await temporaryFolder();
    const live = join(temporary.path, 'queued-crawler.db');
    new DatabaseSync(live).close();
    await writeFile(live + companion, 'of the service');
    const { ino } = await stat(live);
    const onProgress = (): void => undefined;
    const refused = { kind: 'invalid', reason: 'unusable_path' };
    const remote = { url: 'http://127.0.0.1:1', adminToken: 'none', file: live, onProgress };
    await expect(fetchBackup(remote)).rejects.toMatchObject(refused);
    const local = { dataDir: temporary.path, file: live, onProgress };
    await expect(backupFolder(local)).rejects.toMatchObject(refused);
    expect((await stat(live)).ino).toBe(ino);
  },
);
