import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MongoClient } from 'mongodb';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../src/domain/durations.ts';
import { copyToMongodb } from '../../src/migrate/copy-to-mongodb.ts';
import type { CopyDocument } from '../../src/store/mongo/unfinished-copy.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { NORMAL, startApp } from '../support/app.ts';
import { startCommandLine } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { openMongoGate } from '../support/mongo-gate.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { startReceiver } from '../support/receiver.ts';
import { startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the command; with `killWhen`, sends it the signal as soon as that is printed. */
function migrate(
  from: string,
  to: string,
  killWhen?: RegExp,
  signal: 'SIGKILL' | 'SIGINT' = 'SIGKILL',
): Promise<Ended> {
  const child = spawn(process.execPath, ['src/migrate/main.ts', '--from', from, '--to', to], {
    cwd: join(import.meta.dirname, '..', '..'),
  });
  let output = '';
  const read = (chunk: Buffer): void => {
    output += chunk.toString();
    if (killWhen?.test(output) === true) child.kill(signal);
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

describe.skipIf(mongodbUri === '')('npm run migrate', () => {
  test('moves everything, continues where it was interrupted, and the service continues there', async () => {
    await using database = testDatabase();
    await using receiver = await startReceiver();
    await using site = await startSite();
    await using app = await startApp();
    await app.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await app.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', callback_url: receiver.url });
    const push = async (name: string, path: string, count: number) => {
      const items = Array.from({ length: count }, (_, n) => ({ url: `${site.url}/${path}/${n}` }));
      const { json } = await app.rest('POST', `/crawler/${NORMAL}/${name}/push_batch`, { items });
      return json.results.map((each: { rid: string }) => each.rid) as string[];
    };
    const done = await push('store', 'page', 40);
    await push('hook', 'page', 5);
    await eventually(async () => {
      const { json } = await app.rest('GET', `/crawler/${NORMAL}/stats`);
      expect(json.completed).toBe(45);
    });
    await app.rest('POST', `/crawler/${NORMAL}/store/pause`);
    const pool = { name: 'own', proxies: ['http://user:password@127.0.0.1:3128'] };
    const made = await app.rest('POST', `/proxies/${NORMAL}`, pool);
    expect(made.status, made.text).toBe(200);
    const waiting = [
      ...(await push('store', 'later', 1_000)),
      ...(await push('store', 'more', 700)),
    ];
    // The first item is refused, so the places of the others matter.
    const items = [{ url: 'not a URL' }, { url: `${site.url}/named` }];
    const named = { request_id: 'named', items };
    const namedBefore = await app.rest('POST', `/crawler/${NORMAL}/store/push_batch`, named);
    expect(namedBefore.json.results[1].rid, namedBefore.text).toBeTypeOf('string');
    const before = (await app.rest('GET', `/crawler/${NORMAL}/stats`)).json;
    const stored = (await app.rest('GET', `/storage?token=${NORMAL}&rid=${done[0]}`)).text;
    const running = await migrate(app.dataDir, database.uri);
    expect(running).toMatchObject({
      code: 5,
      output: expect.stringContaining('Another process uses'),
    });
    await app.stop();
    const sqlite = new DatabaseSync(join(app.dataDir, 'queued-crawler.db'));
    // MongoDB removes older samples within a minute.
    const since = Date.now() - DAY_MS;
    sqlite.exec(
      `INSERT INTO notices VALUES ('one', 'account', 'subject', 'text', 1, 8000000000000, 3);
       INSERT INTO removed_accounts VALUES ('removed', 1);
       INSERT INTO samples SELECT crawler_id, ${since} + 60000 * n, '1970-01-01', '{"success":' || n || '}', n
         FROM crawlers, (WITH RECURSIVE counted (n) AS
           (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 300) SELECT n FROM counted);
       UPDATE jobs SET last_failure = 'timeout' WHERE rid = '${waiting[0]}'`,
    );
    const crawlerCount = Number(sqlite.prepare('SELECT count(*) AS n FROM crawlers').get()?.n);
    sqlite.close();

    expect(await migrate(app.dataDir, database.uri, /URLs in queues/, 'SIGINT')).toMatchObject({
      code: 130,
      output: expect.stringContaining('The same command continues the copy.'),
    });
    const broken = await migrate(app.dataDir, database.uri, /URLs in queues/);
    expect(broken.code).not.toBe(0);
    const moved = await migrate(app.dataDir, database.uri);
    expect(moved.output).toMatch(/URLs in queues\s+1701\s+1701/);
    expect(moved.output).toMatch(/stored results\s+40\s+40/);
    expect(moved.output).toMatch(/notices to be sent\s+1\s+1/);
    expect(moved.code).toBe(0);
    const target = await MongoClient.connect(database.uri);
    const tried = await target.db().collection('jobs').find({ lastFailure: 'timeout' }).toArray();
    expect(tried.map(({ _id }) => String(_id))).toEqual([waiting[0]]);
    const samples = await target.db().collection('samples').find({ queued: 300 }).toArray();
    expect(samples).toHaveLength(crawlerCount);
    expect(samples[0]).toMatchObject({
      at: new Date(since + 18_000_000),
      counts: { success: 300 },
    });
    const removed = await target.db().collection('removed_accounts').find().toArray();
    await target.close();
    expect(removed).toEqual([{ _id: 'removed', removedAt: new Date(1) }]);
    const again = await migrate(app.dataDir, database.uri);
    expect(again).toMatchObject({ code: 5, output: expect.stringContaining('finished copy') });

    await using after = await startApp({ env: { MONGODB_URI: database.uri } });
    expect(unprobed((await after.rest('GET', `/crawler/${NORMAL}/stats`)).json)).toEqual(
      unprobed(before),
    );
    const page = await after.rest('GET', `/storage?token=${NORMAL}&rid=${done[0]}`);
    expect(page.text).toBe(stored);
    const found = await after.rest('GET', `/crawler/${NORMAL}/store/find_by_rid/${waiting[0]}`);
    expect(found.json).toMatchObject({
      status: 'QUEUED',
      request_info: { url: `${site.url}/later/0` },
    });
    const repeated = await after.rest('POST', `/crawler/${NORMAL}/store/push_batch`, named);
    expect(repeated.json).toEqual(namedBefore.json);
    const opened = await after.rest('GET', `/proxies/${NORMAL}/own`);
    expect(opened.json.proxies).toMatchObject([{ proxy: '127.0.0.1:3128', has_credentials: true }]);
    await after.rest('POST', `/crawler/${NORMAL}/store/unpause`);
    await eventually(async () => {
      const { json } = await after.rest('GET', `/crawler/${NORMAL}/stats`);
      expect(json).toMatchObject({ completed: 1_746, queue: { waiting: 0 } });
    });
  });

  test('copies long rows a few at once', async () => {
    await using folder = await temporaryFolder();
    await using database = testDatabase();
    await using app = await startApp({ dataDir: folder.path });
    await app.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await app.rest('POST', `/crawler/${NORMAL}/store/pause`);
    const items = Array.from({ length: 5 }, (_, n) => ({ url: `http://127.0.0.1:1/${n}` }));
    await app.rest('POST', `/crawler/${NORMAL}/store/push_batch`, { items });
    await app.stop();
    const sqlite = new DatabaseSync(join(folder.path, 'queued-crawler.db'));
    sqlite.exec(
      'UPDATE jobs SET size = CASE WHEN rid IN (SELECT rid FROM jobs ORDER BY rid LIMIT 3) THEN 9000000 ELSE 9000 END',
    );
    sqlite.close();
    const from = await openSqliteStore({ dataDir: folder.path, logger: pino({ enabled: false }) });
    const target = await MongoClient.connect(database.uri);
    const copied: number[] = [];
    await copyToMongodb({
      from,
      to: target.db(),
      onProgress: (what, rows) => void (what === 'URLs in queues' && copied.push(rows)),
    });
    await target.close();
    await from.store.close();
    expect(copied).toEqual([1, 2, 5]);
  });

  test('a killed migrate leaves nothing running, and a service refuses its unfinished copy', async () => {
    await using folder = await temporaryFolder();
    await using database = testDatabase();
    await using gate = await openMongoGate(database.uri);
    await using app = await startApp({ dataDir: folder.path });
    await app.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await app.stop();
    const held = gate.hold((command) => command.insert === 'accounts');
    const args = ['migrate', '--from', folder.path, '--to', gate.uri];
    await using copying = startCommandLine(args, { env: { HOME: folder.path } });
    await held.reached;
    copying.kill('SIGKILL');
    // Both have ended: the pipe of their output is closed.
    expect(await copying.ended).toMatchObject({ code: null });
    held.release();

    const started = startProcess({ DATA_DIR: folder.path, MONGODB_URI: database.uri });
    await expect(started).rejects.toThrow('MONGODB_URI names a database with an unfinished copy');
    expect(await migrate(folder.path, database.uri)).toMatchObject({ code: 0 });
    await using after = await startApp({ env: { MONGODB_URI: database.uri } });
    expect((await after.rest('GET', `/crawler/${NORMAL}/store`)).status).toBe(200);
  });

  test.each([
    ['is whole when what has expired is gone', 'audit', 0],
    ['is not whole when anything else is gone', 'accounts', 1],
  ])('a copy %s', async (_name, collection, code) => {
    await using folder = await temporaryFolder();
    await using database = testDatabase();
    await using app = await startApp({ dataDir: folder.path });
    await app.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await app.stop();
    expect(await migrate(folder.path, database.uri)).toMatchObject({ code: 0 });
    const client = await MongoClient.connect(database.uri);
    const { deletedCount } = await client.db().collection(collection).deleteMany({});
    expect(deletedCount).toBeGreaterThan(0);
    const copies = client.db().collection<CopyDocument>('meta');
    await copies.updateOne({ _id: 'copy' }, { $set: { done: false } });
    await client.close();
    expect(await migrate(folder.path, database.uri)).toMatchObject({ code });
  });

  test('does not continue a copy when a service has written to the source since', async () => {
    await using folder = await temporaryFolder();
    await using database = testDatabase();
    await using app = await startApp({ dataDir: folder.path });
    await app.stop();
    const whole = await migrate(folder.path, database.uri);
    expect(whole).toMatchObject({ code: 0 });
    const client = await MongoClient.connect(database.uri);
    // As one that was killed before its end leaves it.
    await client
      .db()
      .collection<CopyDocument>('meta')
      .updateOne({ _id: 'copy' }, { $set: { done: false } });
    await client.close();
    await using again = await startApp({ dataDir: folder.path });
    await again.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await again.stop();
    expect(await migrate(folder.path, database.uri)).toEqual({
      code: 5,
      output: expect.stringContaining('has written to the source since this copy began'),
    });
  });

  test('names --to, and says why the database cannot be used', async () => {
    await using app = await startApp();
    await app.stop();
    expect(await migrate(app.dataDir, 'mongodb://127.0.0.1:1/a')).toEqual({
      code: 1,
      output: expect.stringMatching(/^--to: The database cannot be reached.*ECONNREFUSED/),
    });
    expect(await migrate(app.dataDir, 'mongodb://u:pass%zz@127.0.0.1/a')).toEqual({
      code: 2,
      output: expect.stringMatching(/^--to: (?!.*pass)/),
    });
  });

  test('refuses a database that is in use, and says what it needs', async () => {
    await using database = testDatabase();
    const client = await MongoClient.connect(database.uri);
    await client.db().collection('accounts').insertOne({ name: 'somebody' });
    await client.close();
    await using app = await startApp();
    await app.stop();
    expect(await migrate(app.dataDir, database.uri)).toMatchObject({
      code: 5,
      output: expect.stringContaining('in use'),
    });
    expect(await migrate('/nowhere', database.uri)).toEqual({
      code: 2,
      output: 'there is no folder /nowhere\n',
    });
  });
});

/**
 * What changes after the move: the moments of probes, and bytes that are added up once a minute.
 */
const UNSTEADY = new Set(['last_probe_at', 'stored']);

function unprobed(statistics: object): unknown {
  return JSON.parse(
    JSON.stringify(statistics, (name, value) => (UNSTEADY.has(name) ? undefined : value)),
  );
}
