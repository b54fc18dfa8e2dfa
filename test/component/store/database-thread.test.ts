import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSqliteDatabase } from '../../../src/store/sqlite/thread/database.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('a call whose batch cannot be committed fails and changes nothing, and one after the end is refused', async () => {
  await using folder = await temporaryFolder();
  const database = await openSqliteDatabase(join(folder.path, 'test.db'), () => undefined);
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
