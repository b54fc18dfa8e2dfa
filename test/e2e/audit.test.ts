import { expect, test } from 'vitest';
import { ADMIN, JAVASCRIPT, NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { createTestClock } from '../support/test-clock.ts';

const DAY = 86_400_000;

interface Listed {
  readonly by: string;
  readonly method: string;
  readonly crawler: string;
  readonly changes: string;
}

test('an account sees who changed what, and never a token', async () => {
  await using app = await startApp();
  const records = async (query = ''): Promise<Listed[]> => {
    const reply = await app.rest('GET', `/audit/${NORMAL}?${query}`);
    expect(reply.status, reply.text).toBe(200);
    return reply.json.records;
  };
  const brief = async (query = '') =>
    (await records(query)).map(({ by, method, crawler }) => [by, method, crawler]);
  expect(await records()).toEqual([]);
  const callback = 'http://127.0.0.1:8099/long-random-path?secret=hush';
  const crawler = await createCrawler(app, 'shop', { callback_url: callback });
  // It exists already, just so.
  await createCrawler(app, 'shop', { callback_url: callback });
  await app.rest('PUT', crawler.path, { concurrency: 7 });
  await crawler.post('pause');
  expect((await app.rest('PUT', crawler.path, { concurrency: -7 })).status).toBe(422);
  await crawler.details();
  await crawler.push('https://example.com/');
  await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js' });
  const admin = { authorization: `Bearer ${ADMIN}` };
  const updated = await app.rest('PUT', '/accounts/default', { email: 'a@example.com' }, admin);
  expect(updated.status, updated.text).toBe(200);

  expect(await brief()).toEqual([
    ['operator', 'UpdateAccount', ''],
    ['javascript', 'CreateCrawler', 'js'],
    ['normal', 'PauseCrawler', 'shop'],
    ['normal', 'UpdateCrawler', 'shop'],
    ['normal', 'CreateCrawler', 'shop'],
  ]);
  const [first] = await records('method=UpdateCrawler');
  expect(first).toMatchObject({
    changes: '{"concurrency":7}',
    remote: expect.stringMatching(/127/),
  });
  expect((await records('method=CreateCrawler&crawler=shop'))[0]?.changes).toBe(
    '{"callback_url":"http://127.0.0.1:8099/…"}',
  );
  const all = JSON.stringify(await records());
  for (const secret of [NORMAL, JAVASCRIPT, ADMIN, 'hush', 'long-random-path']) {
    expect(all).not.toContain(secret);
  }
  expect(await brief('by=javascript')).toEqual([['javascript', 'CreateCrawler', 'js']]);
  expect(await records(`to=${new Date(Date.now() - DAY).toISOString()}`)).toEqual([]);
  expect(await records(`from=${new Date(Date.now() - DAY).toISOString()}`)).toHaveLength(5);
  const page = await app.rest('GET', `/audit/${JAVASCRIPT}?page_size=2`);
  expect(page.json.records).toHaveLength(2);
  expect(await brief(`page_size=3&page_token=${page.json.next_page_token}`)).toEqual([
    ['normal', 'PauseCrawler', 'shop'],
    ['normal', 'UpdateCrawler', 'shop'],
    ['normal', 'CreateCrawler', 'shop'],
  ]);
});

test('what was changed just before the service stops is recorded', async () => {
  await using first = await startApp();
  await createCrawler(first, 'last');
  await first.stop();
  await using second = await startApp({ dataDir: first.dataDir });
  const { json } = await second.rest('GET', `/audit/${NORMAL}`);
  expect(json.records).toMatchObject([{ method: 'CreateCrawler', crawler: 'last' }]);
});

// MongoDB removes records by the clock of its server.
test.skipIf(process.env.TEST_STORE === 'mongodb')('records are kept for ninety days', async () => {
  const clock = createTestClock();
  await using app = await startApp({ clock });
  await createCrawler(app, 'old');
  const listed = async () => (await app.rest('GET', `/audit/${NORMAL}`)).json.records;
  clock.advance(89 * DAY);
  await createCrawler(app, 'young');
  expect(await listed()).toMatchObject([{ crawler: 'young' }, { crawler: 'old' }]);
  clock.advance(2 * DAY);
  await eventually(async () => expect(await listed()).toMatchObject([{ crawler: 'young' }]));
});

test.skipIf(mongodbUri === '')('two processes of a database list what either changed', async () => {
  await using database = testDatabase();
  const env = { MONGODB_URI: database.uri };
  await using here = await startProcess(env);
  await using there = await startProcess(env);
  const recordsOf = async (service: ServiceProcess, query = '') =>
    (await service.rest('GET', `/audit/${NORMAL}?${query}`)).json as {
      records: (Listed & { at: string })[];
      next_page_token: string;
    };
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  for (const [at, name] of names.entries()) {
    await createCrawler(at % 2 === 0 ? here : there, name);
  }
  // At the same time, of one crawler.
  await Promise.all([
    here.rest('PUT', `/crawler/${NORMAL}/a`, { concurrency: 7 }),
    there.rest('PUT', `/crawler/${NORMAL}/a`, { max_retries: 3 }),
  ]);
  const listed = await eventually(async () => {
    const [one, two] = [await recordsOf(here), await recordsOf(there)];
    expect(one.records).toHaveLength(8);
    expect(two).toEqual(one);
    return one.records;
  });
  const created = listed.filter(({ method }) => method === 'CreateCrawler');
  expect(created.map(({ crawler }) => crawler)).toEqual(names.toReversed());
  expect(new Set(listed.slice(0, 2).map(({ changes }) => changes))).toEqual(
    new Set(['{"concurrency":7}', '{"max_retries":3}']),
  );
  // A page that one process began is continued by the other.
  const first = await recordsOf(here, 'page_size=5');
  const rest = await recordsOf(there, `page_size=5&page_token=${first.next_page_token}`);
  expect([...first.records, ...rest.records]).toEqual(listed);
});
