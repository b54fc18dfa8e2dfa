import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { ONE_WRITE_BYTES } from '../../../src/store/sqlite/page-writer.ts';
import { type OpenSqliteStore, openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { toStored } from './outcomes.ts';
import { at, claimJobs, createBench, makeJobs } from './store-harness.ts';

const open = (dataDir: string) => openSqliteStore({ dataDir, logger: silentLogger });

/** Running jobs of a new crawler, and the storage that their results go to. */
async function startJobs(store: OpenSqliteStore['store'], count: number) {
  const bench = createBench({ store });
  const crawler = await bench.crawler();
  await bench.push(makeJobs(crawler, count), at(0));
  const lease = await bench.lease(crawler, at(0));
  const { jobs } = await claimJobs(store, lease, count, at(0));
  const scope = { accountId: crawler.accountId, tokenType: 'normal' } as const;
  return { crawler, jobs, scope };
}

async function countRows({ query }: OpenSqliteStore) {
  const tables = ['pages', 'page_pieces', 'unfinished_pages'];
  const [row] = await query(
    `SELECT ${tables.map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`).join(', ')}`,
    [],
  );
  return { ...row };
}

const NO_BYTES = new Uint8Array(0);
const NOTHING = { pages: 0, page_pieces: 0, unfinished_pages: 0 };

test.each([
  { name: 'one page of 8 MiB', sizes: [8 * 1024 * 1024 + 1] },
  { name: 'a page of one write, a small and an empty one', sizes: [ONE_WRITE_BYTES, 7, 0] },
  { name: 'pages of 100 KB', sizes: Array.from({ length: 40 }, () => 100_000) },
])('calls are answered while a turn writes $name', async ({ sizes }) => {
  await using folder = await temporaryFolder();
  const opened = await open(folder.path);
  const { store, database } = opened;
  const { crawler, jobs, scope } = await startJobs(store, sizes.length);
  const bodies = sizes.map((size) => new Uint8Array(randomBytes(size)));
  const outcomes = jobs.map((job, index) => toStored(job, { body: bodies[index] ?? NO_BYTES }));
  const before = database.commits;
  let isWritten = false;
  const finished = store.queue.finish(outcomes, at(1)).finally(() => {
    isWritten = true;
  });
  let answeredBefore = 0;
  while (!isWritten) {
    await store.crawlers.get(crawler.crawlerId);
    if (!isWritten) answeredBefore += 1;
  }
  expect(await finished).toEqual(jobs.map(() => 'won'));
  // No write is longer than this, and something else is answered between any two.
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const leastWrites = Math.ceil(bytes / ONE_WRITE_BYTES);
  expect(database.commits - before).toBeGreaterThan(leastWrites);
  expect(answeredBefore).toBeGreaterThanOrEqual(leastWrites);
  const stored = await store.results.getMany(
    scope,
    jobs.map(({ rid }) => rid),
  );
  expect(stored.map(({ body }) => Buffer.from(body).equals(bodies.shift() ?? NO_BYTES))).toEqual(
    jobs.map(() => true),
  );
  const sizesThere = await store.results.sizes(
    scope,
    jobs.map(({ rid }) => rid),
  );
  expect([...sizesThere.values()]).toEqual(sizes);
  expect(await store.accounts.usage(crawler.accountId)).toMatchObject({
    storedBytes: bytes + 1_024 * sizes.length,
  });
  await store.results.remove(
    scope,
    jobs.map(({ rid }) => rid),
  );
  expect(await countRows(opened)).toEqual(NOTHING);
  await store.close();
});

test('nothing is left of a large page whose job was deleted', async () => {
  await using folder = await temporaryFolder();
  const opened = await open(folder.path);
  const { store } = opened;
  const { crawler, jobs } = await startJobs(store, 2);
  const body = new Uint8Array(randomBytes(ONE_WRITE_BYTES + 1));
  await store.queue.deleteJob(crawler.crawlerId, jobs[0]?.rid ?? '', at(1));
  const outcomes = jobs.map((job) => toStored(job, { body }));
  expect(await store.queue.finish(outcomes, at(2))).toEqual(['lost', 'won']);
  expect(await countRows(opened)).toEqual({ pages: 1, page_pieces: 1, unfinished_pages: 0 });
  await store.close();
});

test('what a process left of a large page is removed at the next start', async () => {
  await using folder = await temporaryFolder();
  const first = await open(folder.path);
  await first.query("INSERT INTO pages (page_id, body) VALUES (7, 'a'), (8, 'b')", []);
  await first.query("INSERT INTO page_pieces VALUES (7, 1, 'a'), (8, 1, 'b')", []);
  await first.query('INSERT INTO unfinished_pages VALUES (7)', []);
  await first.store.close();
  const second = await open(folder.path);
  expect(await countRows(second)).toEqual({ pages: 1, page_pieces: 1, unfinished_pages: 0 });
  await second.store.close();
});
