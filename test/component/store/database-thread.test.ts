import { pbkdf2 } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openSqliteDatabase } from '../../../src/store/sqlite/thread/database.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('a call whose batch cannot be committed fails and changes nothing, and one after the end is refused', async () => {
  await using folder = await temporaryFolder();
  const database = await openSqliteDatabase(join(folder.path, 'test.db'));
  await database.query('CREATE TABLE parents (id INTEGER PRIMARY KEY)', []);
  await database.query(
    `CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)`,
    [],
  );
  const unavailable = { reason: 'database_unavailable' };
  const orphan = database.query('INSERT INTO children (parent) VALUES (2)', []);
  await expect(orphan).rejects.toMatchObject(unavailable);
  expect(await database.query('SELECT * FROM children', [])).toEqual([]);
  await database.query('INSERT INTO parents VALUES (1)', []);
  expect(await database.query('SELECT * FROM parents', [])).toEqual([{ id: 1 }]);
  await database.close();
  await expect(database.call('ping', [])).rejects.toMatchObject(unavailable);
});

test('a backup that begins while others write is made', async () => {
  await using folder = await temporaryFolder();
  const database = await openSqliteDatabase(join(folder.path, 'test.db'));
  await database.query('CREATE TABLE numbers (number INTEGER)', []);
  let written = 0;
  let ends = false;
  const write = async (): Promise<void> => {
    while (!ends) {
      const insert = () => database.query('INSERT INTO numbers VALUES (1)', []);
      await Promise.all(Array.from({ length: 1_000 }, insert));
      written += 1_000;
    }
  };
  /** Keeps the threads of the pool busy, so that copying begins at any moment of a transaction. */
  const compute = async (): Promise<void> => {
    while (!ends) await promisify(pbkdf2)('a', 'b', 2_000, 32, 'sha256');
  };
  const others = [write(), write(), ...Array.from({ length: 8 }, compute)];
  try {
    for (let backup = 1; backup <= 20; backup++) {
      const least = written;
      const path = join(folder.path, `backup-${backup}`);
      await database.backup(path, () => undefined);
      using copy = new DatabaseSync(path, { readOnly: true });
      const { count } = copy.prepare('SELECT count(*) AS count FROM numbers').get() ?? {};
      expect(count).toBeGreaterThanOrEqual(least);
    }
  } finally {
    ends = true;
    await Promise.all(others);
    await database.close();
  }
});

test('a backup ends although its database shrinks below what was copied', async () => {
  await using folder = await temporaryFolder();
  const database = await openSqliteDatabase(join(folder.path, 'test.db'));
  await database.query('CREATE TABLE blobs (content BLOB)', []);
  const insert = `INSERT INTO blobs WITH RECURSIVE numbers (number) AS
    (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 400)
    SELECT zeroblob(200000) FROM numbers`;
  await database.query(insert, []);
  let shrinking: Promise<unknown> | undefined;
  const path = join(folder.path, 'backup');
  const parts: number[] = [];
  await database.backup(path, (copied, total) => {
    parts.push(copied / total);
    // Calls of one transaction, during which the copy waits.
    shrinking ??= Promise.all([
      database.query('DELETE FROM blobs WHERE rowid > 1', []),
      database.query('PRAGMA incremental_vacuum', []),
    ]);
  });
  expect(shrinking).toBeDefined();
  await shrinking;
  await database.close();
  expect(Math.max(...parts)).toBeLessThanOrEqual(1);
  using copy = new DatabaseSync(path, { readOnly: true });
  // On a busy machine the copy may end before the calls arrive.
  const { count } = copy.prepare('SELECT count(*) AS count FROM blobs').get() ?? {};
  expect([1, 400]).toContain(count);
  expect(copy.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
});
