import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../../src/store/sqlite/migrations.ts';
import { createSql } from '../../../src/store/sqlite/sql.ts';
import { type Batches, createBatches } from '../../../src/store/sqlite/thread/batches.ts';
import type {
  BatchMessage,
  CallMessage,
} from '../../../src/store/sqlite/thread/database-messages.ts';
import type { SyncedFile } from '../../../src/store/sqlite/thread/disk-sync.ts';
import { openLogMark } from '../../../src/store/sqlite/thread/log-mark.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

let stack: AsyncDisposableStack;
let batches: Batches;
/** Syncs that have been asked for and are not done. */
let syncs: { readonly file: SyncedFile; readonly done: () => void }[];
let answered: Map<number, unknown>;
let database: DatabaseSync;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  const folder = stack.use(await temporaryFolder());
  const path = join(folder.path, 'test.db');
  database = stack.adopt(new DatabaseSync(path), (each) => each.close());
  database.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0');
  migrate(database);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE); CREATE TABLE notes (body BLOB)');
  syncs = [];
  answered = new Map();
  const sql = createSql(database);
  batches = createBatches({
    sql,
    mark: stack.adopt(openLogMark(path, sql), (mark) => mark.close()),
    disk: {
      sync(file) {
        const { promise, resolve } = Promise.withResolvers<void>();
        syncs.push({ file, done: resolve });
        return promise;
      },
      close: () => Promise.resolve(),
    },
    answer({ answers }: BatchMessage) {
      for (const answer of answers) {
        answered.set(answer.id, 'error' in answer ? answer.error.reason : answer.value);
      }
    },
  });
});

afterEach(() => stack.disposeAsync());

const TIME = { nowMs: 0, aheadMs: 0 };
const write = (id: number, bytes = 1): CallMessage => ({
  ...TIME,
  id,
  operation: 'query',
  args: ['INSERT INTO notes VALUES (zeroblob(?))', [bytes]],
});
const read = (id: number): CallMessage => ({
  ...TIME,
  id,
  operation: 'accounts.get',
  args: ['nobody'],
});
const notes = () => database.prepare('SELECT count(*) AS n FROM notes').get()?.n;

async function sync(): Promise<SyncedFile | undefined> {
  const next = syncs.shift();
  next?.done();
  await nextTurn();
  return next?.file;
}

test('a write is answered when it is on the disk, and a read at once', async () => {
  batches.take([write(1), read(2)]);
  expect([...answered.keys()]).toEqual([2]);
  batches.take([read(3)]);
  expect([...answered.keys()]).toEqual([2, 3]);
  expect(await sync()).toBe('log');
  expect(answered.has(1)).toBe(true);
  await batches.settled();
});

test('sums of days are answered at once, as days are', async () => {
  const sums = { operation: 'stats.historySums', args: [['crawler'], {}] };
  batches.take([write(1)]);
  batches.take([{ ...TIME, id: 2, ...sums }]);
  expect([...answered.keys()]).toEqual([2]);
  await sync();
  await batches.settled();
});

test('a lease is taken after the writes before it, and answered before they are on the disk', async () => {
  const acquire: CallMessage = {
    ...TIME,
    id: 2,
    operation: 'queue.acquire',
    args: ['crawler', 'process', 1_000, new Date()],
  };
  batches.take([write(1), acquire]);
  expect([...answered.keys()]).toEqual([2]);
  await sync();
  expect([...answered.keys()]).toEqual([2, 1]);
  await batches.settled();
});

test('writes that arrive during a sync are one batch after it', async () => {
  batches.take([write(1)]);
  batches.take([write(2)]);
  batches.take([write(3)]);
  expect(notes()).toBe(1);
  await sync();
  expect(notes()).toBe(3);
  expect([...answered.keys()]).toEqual([1]);
  await sync();
  expect([...answered.keys()]).toEqual([1, 2, 3]);
  expect(syncs).toEqual([]);
});

test('a long log is moved into the database, which is on the disk before the next write', async () => {
  batches.take([write(1, 6 * 1024 * 1024)]);
  batches.take([write(2), read(3)]);
  expect(await sync()).toBe('log');
  expect([...answered.keys()]).toEqual([3, 1]);
  expect(syncs.map(({ file }) => file)).toEqual(['database']);
  expect(notes()).toBe(1);
  batches.take([read(4)]);
  expect(answered.has(4)).toBe(true);
  await sync();
  expect(notes()).toBe(2);
  expect(await sync()).toBe('log');
  expect(answered.has(2)).toBe(true);
});

test('a call that fails fails alone, and what wrote nothing is not synced', async () => {
  const broken: CallMessage = {
    ...TIME,
    id: 1,
    operation: 'query',
    args: ['INSERT INTO nowhere', []],
  };
  batches.take([broken, read(2)]);
  await batches.settled();
  expect(answered.get(1)).toBe('database_unavailable');
  expect(answered.get(2)).toBeUndefined();
  expect(syncs).toEqual([]);
});

test('reads are answered when the disk refuses the writes that they came with', async () => {
  const pages = Number(database.prepare('PRAGMA page_count').get()?.page_count);
  database.exec(`PRAGMA max_page_count = ${pages + 2}`);
  batches.take([read(1), write(2, 1024 * 1024), read(3), write(4)]);
  await sync();
  await batches.settled();
  expect(answered.get(2)).toBe('database_unavailable');
  const reads = [1, 3].map((id) => [answered.has(id), answered.get(id)]);
  expect(reads).toEqual([
    [true, undefined],
    [true, undefined],
  ]);
});
