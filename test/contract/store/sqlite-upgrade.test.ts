import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { chargedBytes, chargedJobBytes } from '../../../src/domain/quotas.ts';
import { migrations } from '../../../src/store/sqlite/migrations.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { at, makeCrawler, makeJob } from './store-harness.ts';

/** The database as it was before accounts had quotas. */
const BEFORE_QUOTAS = 2;

const LATER = at(1_000_000).getTime();

const OLD_DETAILS = '{"failure":"timeout","screenshot_url":"s","original_content_type":"a/b"}';

test('a database of before quotas counts what its accounts use, and its results keep their details', async () => {
  await using folder = await temporaryFolder();
  const database = new DatabaseSync(join(folder.path, 'queued-crawler.db'));
  for (const step of migrations.slice(0, BEFORE_QUOTAS)) database.exec(step);
  database.exec(`PRAGMA user_version = ${BEFORE_QUOTAS}`);
  database.exec(`
    INSERT INTO accounts VALUES ('a', 'shop', '', 'n', 'j', 0, 1, 0), ('b', 'empty', '', 'n2', 'j2', 0, 0, 0);
    INSERT INTO pages VALUES (1, zeroblob(100)), (2, zeroblob(20));
    INSERT INTO results VALUES ('r', 'a', 'normal', 1, 0, ${LATER}, 'u', 'u', 200, 200, '', '${OLD_DETAILS}');
    INSERT INTO deliveries VALUES
      ('d', 'c', 2, 'delivered', 0, 1, NULL, 0, ${LATER}, 'u', 'u', 200, 200, '', '{}', '[]', 20, '[]');
  `);
  for (const [id, name] of [
    ['c', 'own'],
    ['x', '.async-normal'],
  ]) {
    database.exec(`
      INSERT INTO crawlers VALUES
        ('${id}', 'a', '${name}', 'normal', 'storage', NULL, 30, 1, 1, NULL, 0, 0, '[]', 0, 0, NULL);
      INSERT INTO dispatch (crawler_id, waiting, pushed) VALUES ('${id}', 1, 1);
    `);
  }
  const job = makeJob(makeCrawler('a'), {
    url: 'https://example.com/ü',
    method: 'POST',
    body: new Uint8Array(50),
  });
  database
    .prepare(
      `INSERT INTO jobs (rid, crawler_id, account_id, url, method, body, parameters, callback_headers, created_at, state, due_at)
        VALUES (?, 'c', 'a', ?, 'POST', ?, '{}', '[]', 0, 'waiting', 0)`,
    )
    .run(job.rid, job.url, job.body ?? null);
  database.close();

  const { store, query } = await openSqliteStore({ dataDir: folder.path, logger: silentLogger });
  await using _closing = { [Symbol.asyncDispose]: () => store.close() };
  expect(await query('SELECT host, priority, unique_key FROM jobs', [])).toEqual([
    { host: 'example.com', priority: 5, unique_key: null },
  ]);
  const none = { crawlers: 0, concurrency: 0, storedBytes: 0, queuedBytes: 0, queued: 0 };
  expect(await store.accounts.usage('b')).toEqual(none);
  expect(await store.accounts.usage('a')).toEqual({
    crawlers: 1,
    concurrency: 30,
    queued: 1,
    storedBytes: chargedBytes(100) + chargedBytes(20),
    queuedBytes: chargedJobBytes(job),
  });
  expect((await store.accounts.get('a'))?.limits).toEqual({});
  const stored = await store.results.get({ accountId: 'a', tokenType: 'normal' }, 'r');
  expect(stored?.details).toEqual({
    failure: 'timeout',
    screenshotUrl: 's',
    originalHeaders: { content_type: 'a/b' },
  });
  // What is counted goes when it goes.
  await store.queue.deleteJob('c', job.rid, at(0));
  await store.results.remove({ accountId: 'a', tokenType: 'normal' }, ['r']);
  await store.crawlers.remove('c');
  expect(await store.accounts.usage('a')).toEqual(none);
});

/** The database as it was while each setting of a crawler had a column. */
const BEFORE_SETTINGS = 7;

test('crawlers of a database with a column for each setting keep their settings', async () => {
  await using folder = await temporaryFolder();
  const database = new DatabaseSync(join(folder.path, 'queued-crawler.db'));
  for (const step of migrations.slice(0, BEFORE_SETTINGS)) database.exec(step);
  database.exec(`PRAGMA user_version = ${BEFORE_SETTINGS}`);
  const columns =
    'crawler_id, account_id, name, token_type, delivery, callback_url, concurrency, max_retries, retry_window_hours, politeness, webhook_secrets, created_at, updated_at, delivery_concurrency';
  database.exec(`
    INSERT INTO crawlers (${columns}) VALUES
      ('c', 'a', 'polite', 'normal', 'webhook', 'https://example.com/in', 7, 8, 9,
        '{"maxPerHost":1,"delayMs":2,"robotsTxt":true}', '[{"secret":"s"}]', 0, 0, 3),
      ('d', 'a', 'plain', 'javascript', 'storage', NULL, 30, 0, 336, NULL, '[]', 0, 0, 0);
  `);
  database.close();

  const { store } = await openSqliteStore({ dataDir: folder.path, logger: silentLogger });
  await using _closing = { [Symbol.asyncDispose]: () => store.close() };
  expect(await store.crawlers.get('c')).toMatchObject({
    callbackUrl: 'https://example.com/in',
    concurrency: 7,
    deliveryConcurrency: 3,
    maxRetries: 8,
    retryWindowHours: 9,
    politeness: { maxPerHost: 1, delayMs: 2, robotsTxt: true },
  });
  expect(await store.crawlers.get('d')).toMatchObject({
    callbackUrl: undefined,
    concurrency: 30,
    deliveryConcurrency: 0,
    maxRetries: 0,
    retryWindowHours: 336,
    politeness: undefined,
  });
});
