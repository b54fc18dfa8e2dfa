import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createRid } from '../../../src/domain/rid.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { eventually } from '../../support/eventually.ts';
import { lendAgain } from '../../support/lend-again.ts';
import { silentLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { storeContract } from './store-contract.ts';
import { at, claimJobs, createBench, LIMITS, makeJob } from './store-harness.ts';

async function openInFolder(dataDir: string) {
  return openSqliteStore({ dataDir, logger: silentLogger });
}

const lend = lendAgain(
  async () => {
    const folder = await temporaryFolder();
    let opened = await openInFolder(folder.path);
    return {
      get opened() {
        return opened;
      },
      async reopen() {
        await opened.store.close();
        opened = await openInFolder(folder.path);
        return opened.store;
      },
      async [Symbol.asyncDispose]() {
        await opened.store.close();
        await folder[Symbol.asyncDispose]();
      },
    };
  },
  async ({ opened: { query } }) => {
    // These have one row, which a migration inserts.
    const tables = await query(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('result_order', 'commits')",
      [],
    );
    await Promise.all(tables.map(({ name }) => query(`DELETE FROM ${String(name)}`, [])));
  },
);

storeContract('SQLite', async () => {
  const lent = await lend();
  return {
    store: lent.resource.opened.store,
    reopen: lent.resource.reopen,
    [Symbol.asyncDispose]: () => lent[Symbol.asyncDispose](),
  };
});

test('a push that fails leaves the pushes that arrived with it alone', async () => {
  await using folder = await temporaryFolder();
  const { store } = await openInFolder(folder.path);
  const crawler = await createBench({ store }).crawler();
  const { crawlerId, accountId } = crawler;
  const job = makeJob(crawler);
  const other = makeJob(crawler);
  const pushed = await Promise.allSettled(
    [job, job, other].map((each) =>
      store.queue.push({ crawlerId, accountId, jobs: [each] }, LIMITS, at(0)),
    ),
  );
  expect(pushed.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  const counters = await store.crawlers.counters([crawlerId]);
  expect(counters.get(crawlerId)).toMatchObject({ waiting: 2, pushed: 2 });
  await store.close();
});

test('pushes that arrive together share a commit', async () => {
  await using folder = await temporaryFolder();
  const { store, database } = await openInFolder(folder.path);
  const crawler = await createBench({ store }).crawler();
  const before = database.commits;
  const { crawlerId, accountId } = crawler;
  await Promise.all(
    Array.from({ length: 500 }, () =>
      store.queue.push({ crawlerId, accountId, jobs: [makeJob(crawler)] }, LIMITS, at(0)),
    ),
  );
  expect(database.commits - before).toBeLessThan(50);
  await store.close();
});

test('an operation that fails takes nothing of its batch with it', async () => {
  await using folder = await temporaryFolder();
  const { store } = await openInFolder(folder.path);
  const crawler = await createBench({ store }).crawler();
  const { crawlerId, accountId } = crawler;
  const job = makeJob(crawler);
  const results = await Promise.allSettled([
    store.queue.push({ crawlerId, accountId, jobs: [makeJob(crawler)] }, LIMITS, at(0)),
    store.queue.push({ crawlerId, accountId, jobs: [job, job] }, LIMITS, at(0)),
    store.queue.push({ crawlerId, accountId, jobs: [makeJob(crawler)] }, LIMITS, at(0)),
  ]);
  expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  const counters = (await store.crawlers.counters([crawlerId])).get(crawlerId);
  expect(counters).toMatchObject({ pushed: 2, waiting: 2 });
  await store.close();
});

test('a folder in use, and a database of a newer program, are refused with their reason', async () => {
  await using folder = await temporaryFolder();
  const { store } = await openInFolder(folder.path);
  await expect(openInFolder(folder.path)).rejects.toMatchObject({ reason: 'data_dir_in_use' });
  await store.close();
  const database = new DatabaseSync(join(folder.path, 'queued-crawler.db'));
  database.exec('PRAGMA user_version = 999');
  database.close();
  await expect(openInFolder(folder.path)).rejects.toMatchObject({ reason: 'database_too_new' });
});

test('what a purge and a removal leave is swept up in writes of few rows, and after a restart', async () => {
  await using folder = await temporaryFolder();
  const opened = await openInFolder(folder.path);
  const bench = createBench({ store: opened.store });
  const [purged, removed] = [await bench.crawler(), await bench.crawler()];
  const fill = async ({ crawlerId, accountId }: typeof purged) => {
    await opened.query(
      `INSERT INTO jobs (rid, crawler_id, account_id, url, method, parameters, callback_headers, created_at, state, due_at)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
        SELECT ? || i, ?, ?, 'https://example.com/', 'GET', '{}', '[]', 0, 'waiting', 0 FROM n`,
      [crawlerId, crawlerId, accountId],
    );
    await opened.query('UPDATE dispatch SET waiting = 50000 WHERE crawler_id = ?', [crawlerId]);
  };
  await fill(purged);
  await fill(removed);
  const [purgedJobs, removal, [left]] = await Promise.all([
    opened.store.queue.purge(purged.crawlerId, at(1)),
    opened.store.crawlers.remove(removed.crawlerId),
    opened.query('SELECT count(*) AS n FROM jobs', []),
  ]);
  expect([purgedJobs, removal]).toEqual([50_000, { purged: 50_000 }]);
  // Most of it is still there then, and the crawler works on as if it were not.
  expect(Number(left?.n)).toBeGreaterThan(50_000);
  await bench.push([makeJob(purged)], at(1));
  const lease = await bench.lease(purged, at(1));
  expect((await claimJobs(opened.store, lease, 9, at(1))).jobs).toHaveLength(1);
  await opened.store.close();
  const again = await openInFolder(folder.path);
  await eventually(async () => {
    // One call sweeps for ten seconds at most.
    await again.store.maintain(at(2));
    expect(await again.query('SELECT * FROM sweeps', [])).toEqual([]);
  });
  expect(await again.query('SELECT count(*) AS n FROM jobs', [])).toEqual([{ n: 1 }]);
  await again.store.close();
});

test('calls after close are refused as unavailable', async () => {
  await using folder = await temporaryFolder();
  const { store } = await openInFolder(folder.path);
  const last = store.ping();
  await store.close();
  await last;
  await expect(store.ping()).rejects.toMatchObject({ kind: 'unavailable' });
});

test('the hot statements read by an index what is alive, however much there is', async () => {
  await using folder = await temporaryFolder();
  const { store, query } = await openInFolder(folder.path);
  const id = createRid(at(0));
  const hot: [string, unknown[], RegExp][] = [
    [
      `SELECT * FROM jobs WHERE crawler_id = ? AND gen = ? AND state <> 'running' AND due_at <= ?
        AND (queue_deadline IS NULL OR queue_deadline > ? OR first_tried_at IS NOT NULL) ORDER BY due_at, rid LIMIT ?`,
      [id, 0, 1, 1, 5],
      /jobs_next/,
    ],
    [
      `SELECT jobs.* FROM jobs JOIN dispatch d ON d.crawler_id = jobs.crawler_id AND d.purges = jobs.gen
        WHERE queue_deadline <= ? AND state = 'waiting' AND first_tried_at IS NULL
        ORDER BY queue_deadline LIMIT ?`,
      [1, 5],
      /jobs_deadline/,
    ],
    [
      'SELECT crawler_id FROM dispatch WHERE wake_at <= ? AND lease_until <= ? ORDER BY wake_at LIMIT ?',
      [1, 1, 5],
      /dispatch_wake/,
    ],
    [
      `SELECT * FROM deliveries WHERE crawler_id = ? AND state = 'due' AND due_at <= ? ORDER BY due_at, rid LIMIT ?`,
      [id, 1, 5],
      /deliveries_due/,
    ],
    [
      'SELECT * FROM crawlers WHERE probe_at <= ? ORDER BY probe_at LIMIT ?',
      [1, 5],
      /crawlers_probe/,
    ],
  ];
  for (const [sql, values, index] of hot) {
    const plan = (await query(`EXPLAIN QUERY PLAN ${sql}`, values))
      .map((row) => String(row.detail))
      .join('; ');
    expect(plan).toMatch(index);
    expect(plan).not.toMatch(/SCAN|TEMP B-TREE/);
  }
  await store.close();
});

test('taking from an allowance does not wait for the database', async () => {
  await using folder = await temporaryFolder();
  const { store } = await openInFolder(folder.path);
  const ended: string[] = [];
  const before = store.ping().then(() => ended.push('database'));
  await store.rates.take('token', 1, 10, at(0)).then(() => ended.push('rate'));
  await store.rates
    .takeWhole('account', 1, { capacity: 10, refillMs: 1_000 }, at(0))
    .then(() => ended.push('allowance'));
  await before;
  expect(ended).toEqual(['rate', 'allowance', 'database']);
  await store.close();
});
