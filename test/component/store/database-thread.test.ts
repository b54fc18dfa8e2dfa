import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSqliteDatabase } from '../../../src/store/sqlite/thread/database.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** An open database in which a commit fails when `children` has a row without a parent. */
async function openFallible() {
  const folder = await temporaryFolder();
  const database = await openSqliteDatabase(join(folder.path, 'test.db'), () => undefined);
  await database.query('CREATE TABLE parents (id INTEGER PRIMARY KEY)', []);
  await database.query(
    `CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)`,
    [],
  );
  return {
    database,
    async [Symbol.asyncDispose]() {
      await database.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

const INSERT = 'INSERT INTO children (parent) VALUES (?) RETURNING parent';

test('an early call has its value before the commit, and learns whether that succeeded', async () => {
  await using opened = await openFallible();
  const { database } = opened;
  const kept = database.callEarly('query', ['INSERT INTO parents VALUES (1) RETURNING id', []]);
  expect(await kept.value).toEqual([{ id: 1 }]);
  expect(await kept.durable).toBeUndefined();

  const lost = database.callEarly('query', [INSERT, [2]]);
  expect(await lost.value).toEqual([{ parent: 2 }]);
  await expect(lost.durable).rejects.toMatchObject({ reason: 'database_unavailable' });
  expect(await database.query('SELECT * FROM children', [])).toEqual([]);
});

test('an early call that fails has no value and is not kept, and one after the end is refused', async () => {
  await using opened = await openFallible();
  const { database } = opened;
  const wrong = database.callEarly('query', ['INSERT INTO nowhere VALUES (1)', []]);
  await expect(wrong.value).rejects.toMatchObject({ reason: 'database_unavailable' });
  await expect(wrong.durable).rejects.toMatchObject({ reason: 'database_unavailable' });
  await database.close();
  const late = database.callEarly('ping', []);
  await expect(late.value).rejects.toMatchObject({ reason: 'database_unavailable' });
  await expect(late.durable).rejects.toMatchObject({ reason: 'database_unavailable' });
});
