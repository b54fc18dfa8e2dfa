import { cp, rm } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { isLong } from '../support/length.ts';
import { mongodProgram, startMongod } from '../support/mongod.ts';
import { startSite } from '../support/site.ts';

/** Fills a queue and the storage; what a client sees of them. */
async function fill(app: TestApp, site: string) {
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
  const push = async (path: string) => {
    const items = Array.from({ length: 30 }, (_, n) => ({ url: `${site}/${path}/${n}` }));
    await app.rest('POST', `/crawler/${NORMAL}/store/push_batch`, { items });
  };
  await push('page');
  await eventually(async () => expect((await seen(app)).stats.completed).toBe(30));
  await app.rest('POST', `/crawler/${NORMAL}/store/pause`);
  await push('later');
  return seen(app);
}

async function seen(app: TestApp) {
  const stats = (await app.rest('GET', `/crawler/${NORMAL}/stats`)).json;
  const rids = (await app.rest('GET', `/storage/rids?token=${NORMAL}`)).json;
  const pages = (await app.rest('POST', `/storage/bulk?token=${NORMAL}`, { rids })).json;
  // The bytes of an account are added up once a minute.
  return { stats: { ...stats, stored: undefined }, rids, pages };
}

test('a copy of a stopped DATA_DIR is a backup', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const before = await fill(app, site.url);
  await app.stop();
  const backup = `${app.dataDir}-backup`;
  await using _backup = { [Symbol.asyncDispose]: () => rm(backup, { recursive: true }) };
  await cp(app.dataDir, backup, { recursive: true });
  await using restored = await startApp({ dataDir: backup });
  expect(await seen(restored)).toEqual(before);
});

const program = mongodProgram() ?? '';

test.skipIf(program === '' || !isLong)('a copy of a stopped MongoDB is a backup', async () => {
  await using site = await startSite();
  await using mongod = await startMongod(program);
  await using app = await startApp({ env: { MONGODB_URI: `${mongod.uri}/backup` } });
  const before = await fill(app, site.url);
  await app.stop();
  await mongod.stop();
  await using copy = await startMongod(program, mongod.folder);
  await using restored = await startApp({ env: { MONGODB_URI: `${copy.uri}/backup` } });
  expect(await seen(restored)).toEqual(before);
});
