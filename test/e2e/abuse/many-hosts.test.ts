import { expect, test } from 'vitest';
import { ADMIN, startApp, type TestApp } from '../../support/app.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { byLength } from '../../support/length.ts';
import { freePort } from '../../support/listen.ts';
import { startSite } from '../../support/site.ts';

const HOSTS = byLength(20_000, 100_000);
const BATCH = 1_000;
const PAGES = 40;

/** Makes an account; returns its Normal token. */
async function createAccount(app: TestApp, name: string): Promise<string> {
  const authorization = `Bearer ${ADMIN}`;
  const body = { name, email: `${name}@example.com` };
  const reply = await app.rest('POST', '/accounts', body, { authorization });
  expect(reply.status, reply.text).toBe(200);
  return reply.json.normal_token as string;
}

test('a list of many dead hosts holds up no other tenant', async () => {
  await using site = await startSite();
  await using app = await startApp({ env: { NETWORK_ALLOW: '127.0.0.0/8' } });
  const port = await freePort();
  const flood = await createCrawler(app, 'flood', { concurrency: 200, max_retries: 0 });
  await flood.post('pause');
  for (let from = 0; from < HOSTS; from += BATCH) {
    const items = Array.from({ length: BATCH }, (_, n) => {
      const host = from + n;
      return { url: `http://127.${1 + (host >> 16)}.${(host >> 8) & 255}.${host & 255}:${port}/` };
    });
    expect((await flood.post('push_batch', { items })).status).toBe(200);
  }
  await flood.post('unpause');
  await eventually(async () => {
    expect((await flood.details()).activity.failed).toBeGreaterThan(0);
  });

  const token = await createAccount(app, 'neighbour');
  const made = await app.rest('POST', `/crawler/${token}`, { name: 'mine', concurrency: 5 });
  expect(made.status, made.text).toBe(200);
  const items = Array.from({ length: PAGES }, (_, n) => ({ url: `${site.url}/page/1?n=${n}` }));
  await app.rest('POST', `/crawler/${token}/mine/push_batch`, { items });
  // On a machine that is slow, the flood is slow as well.
  await eventually(() => expect(site.hits()).toBe(PAGES));
  // The flood is not over: its neighbour has not waited for it.
  expect((await flood.details()).activity.waiting).toBeGreaterThan(HOSTS / 10);
  // A list of its hosts has a bound, whatever their number.
  const { status, json } = await app.rest('GET', `${flood.path}/hosts?max_count=50`);
  expect([status, json.hosts.length]).toEqual([200, 50]);
});
