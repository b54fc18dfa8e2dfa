import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { chargedBytes, chargedJobBytes } from '../../../src/domain/quotas.ts';
import { schemaSteps } from '../../../src/store/sqlite/schema-steps.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { createRecordingLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { at, makeCrawler, makeJob } from './store-harness.ts';

const LATER = at(1_000_000).getTime();

const DETAILS =
  '{"failure":"timeout","screenshotUrl":"s","originalHeaders":{"content_type":"a/b"}}';

test('a database of 0.1.0 keeps its counts, its details, and what its jobs are for', async () => {
  await using folder = await temporaryFolder();
  const database = new DatabaseSync(join(folder.path, 'queued-crawler.db'));
  database.exec(schemaSteps[0] ?? '');
  database.exec(`PRAGMA user_version = 12`);
  const job = makeJob(makeCrawler('a'), {
    url: 'https://example.com/ü',
    method: 'POST',
    body: new Uint8Array(50),
  });
  const used = {
    crawlers: 1,
    concurrency: 30,
    queued: 1,
    storedBytes: chargedBytes(100) + chargedBytes(20),
    queuedBytes: chargedJobBytes(job),
  };
  database.exec(`
    INSERT INTO accounts (account_id, name, email, normal_hash, javascript_hash, created_at, queued, crawlers,
        concurrency, stored_bytes, queued_bytes) VALUES
      ('a', 'shop', '', 'n', 'j', 0, 1, 1, 30, ${used.storedBytes}, ${used.queuedBytes}),
      ('b', 'empty', '', 'n2', 'j2', 0, 0, 0, 0, 0, 0);
    INSERT INTO pages VALUES (1, zeroblob(100)), (2, zeroblob(20));
    INSERT INTO results VALUES
      ('r', 'a', 'normal', 1, 0, ${LATER}, 'u', 'u', 200, 200, '', '${DETAILS}', 100, NULL, 1);
    INSERT INTO deliveries VALUES
      ('d', 'c', 2, 'delivered', 0, 1, NULL, 0, ${LATER}, 'u', 'u', 200, 200, '', '{}', '[]', 20, '[]', NULL);
    INSERT INTO dispatch (crawler_id, waiting, pushed, held_bytes) VALUES ('c', 1, 1, ${used.queuedBytes});
    INSERT INTO crawlers (crawler_id, account_id, name, token_type, delivery, webhook_secrets, created_at,
        updated_at, settings) VALUES
      ('c', 'a', 'own', 'normal', 'storage', '[]', 0, 0, '{"concurrency":30}');
  `);
  database
    .prepare(
      `INSERT INTO jobs (rid, crawler_id, account_id, url, method, body, parameters, callback_headers, created_at, state, due_at, size)
        VALUES (?, 'c', 'a', ?, 'POST', ?, '{}', '[]', 0, 'waiting', 0, ?)`,
    )
    .run(job.rid, job.url, job.body ?? null, used.queuedBytes);
  database.close();

  const logger = createRecordingLogger();
  const { store, query } = await openSqliteStore({ dataDir: folder.path, logger });
  await using _closing = { [Symbol.asyncDispose]: () => store.close() };
  const upgrades = logger.lines.filter(({ message }) => message.startsWith('the database is upgr'));
  const of = 11 + schemaSteps.length;
  const versions = Array.from({ length: of - 12 }, (_, n) => ({ version: 13 + n, of }));
  expect(upgrades.map(({ fields }) => fields)).toEqual(versions);
  expect(await query('SELECT host, priority, unique_key FROM jobs', [])).toEqual([
    { host: 'example.com', priority: 5, unique_key: null },
  ]);
  const none = { crawlers: 0, concurrency: 0, storedBytes: 0, queuedBytes: 0, queued: 0 };
  expect(await store.accounts.usage('b')).toEqual(none);
  expect(await store.accounts.usage('a')).toEqual(used);
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
