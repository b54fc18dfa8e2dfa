import { afterEach, beforeEach, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../../support/app.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts';
import { eventually } from '../../support/eventually.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { type Site, startSite } from '../../support/site.ts';

// A web site as the attacker: whatever one account's URLs lead to, another account's crawls and
// deliveries continue.

const ROBOTS = `User-agent: *\nDisallow: /${'*a'.repeat(200)}\n${`Disallow: /*${'a'.repeat(500)}b${'a'.repeat(500)}\n`.repeat(490)}`;
const OBSTACLE = '<iframe/_Incapsula_Resource?'.repeat(9_362);

let stack: AsyncDisposableStack;
let app: TestApp;
let site: Site;
let dns: DnsServer;
let receiver: Receiver;
let victim: string;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  dns = stack.use(
    await startDnsServer({
      '*.dead.test': 'silent',
      'good.test': ['127.0.0.1'],
      'hook.test': ['127.0.0.1'],
    }),
  );
  receiver = stack.use(await startReceiver());
  site = stack.use(
    await startSite({
      robotsTxt: ROBOTS,
      routes: {
        '/block': (_request, response, url) => {
          response.writeHead(Number(url.searchParams.get('status') ?? 404));
          response.end(OBSTACLE);
        },
      },
    }),
  );
  app = stack.use(
    await startApp({
      env: {
        DNS_SERVERS: dns.address,
        PROBE_INTERVAL_SECONDS: '1',
        MAX_RETRIES: '3',
        RETRY_WINDOW_HOURS: '1',
      },
    }),
  );
  const account = await app.rest(
    'POST',
    '/accounts',
    { name: 'victim' },
    { authorization: `Bearer ${ADMIN}` },
  );
  victim = account.json.normal_token as string;
  const hook = receiver.url.replace('127.0.0.1', 'hook.test');
  await app.rest('POST', `/crawler/${victim}`, { name: 'own', callback_url: hook });
});

afterEach(async () => {
  await stack.disposeAsync();
});

/** Crawls and delivers for the other account until told to stop; throws when that stops. */
async function victimGoesOn(): Promise<void> {
  const url = encodeURIComponent(`http://good.test:${site.port}/page/1`);
  const inline = await app.rest('GET', `/?token=${victim}&url=${url}`);
  expect([inline.status, inline.headers.get('cb_status')]).toEqual([200, '200']);
  const pushed = await app.rest('GET', `/?token=${victim}&crawler=own&callback=true&url=${url}`);
  await eventually(() => expect(receiver.rids()).toContain(pushed.json.rid));
  expect((await app.rest('GET', '/healthz')).status).toBe(200);
}

test('pages made to keep the search for obstacles busy', async () => {
  const hog = await createCrawler(app, 'hog', { concurrency: 20 });
  const rids = await Promise.all(
    [403, 404, 405, 429, 503].map((status) => hog.push(`${site.url}/block?status=${status}`)),
  );
  await victimGoesOn();
  // The 404 is a result at once; the others are tried again.
  const page = await hog.stored(rids[1] ?? '');
  expect(page.json).toMatchObject({ cb_status: 200, original_status: 404 });
});

test('a robots.txt made to keep its reader busy', async () => {
  const hog = await createCrawler(app, 'hog', { politeness: { robots_txt: true } });
  const rids = await Promise.all(
    Array.from({ length: 5 }, (_, n) => hog.push(`${site.url}/${'a'.repeat(7_900)}${n}`)),
  );
  await victimGoesOn();
  for (const rid of rids) {
    const { json } = await hog.stored(rid);
    // More work than a file may ask for is taken for a no.
    expect(json).toMatchObject({ cb_status: 523, failure: 'robots_disallowed' });
  }
});

test('compression within compression ends for good, early', async () => {
  const hog = await createCrawler(app, 'hog');
  const rid = await hog.push(`${site.url}/hostile/nested-gzip`);
  await victimGoesOn();
  const { json } = await hog.stored(rid);
  expect(json).toMatchObject({ cb_status: 523, failure: 'body_too_large' });
  expect(site.hits('/hostile/nested-gzip')).toBe(1);
});

test('name servers that never answer', async () => {
  const hog = await createCrawler(app, 'hog', { concurrency: 100 });
  await Promise.all(
    Array.from({ length: 60 }, (_, n) => hog.push(`http://${n}.dead.test:${site.port}/`)),
  );
  await eventually(() =>
    expect(
      new Set(dns.asked.filter((each) => each.startsWith('A ') && each.includes('dead'))).size,
    ).toBe(60),
  );
  await victimGoesOn();
  await receiver.untilProbes(2);
  const own = await app.rest('GET', `/crawler/${victim}/own`);
  expect(own.json).not.toHaveProperty('paused_at');
});

test('redirects into the private network are refused, counted and logged without their path', async () => {
  const hog = await createCrawler(app, 'hog');
  const rid = await hog.push(`${site.url}/hostile/private-redirect?to=http://10.0.0.1/secret-path`);
  const { json } = await hog.stored(rid);
  expect(json).toMatchObject({ cb_status: 523, failure: 'address_not_allowed' });
  await eventually(async () => {
    const { text } = await app.rest('GET', '/metrics');
    expect(text).toContain(
      'queued_crawler_refused_connections_total{refusal="address_not_allowed"} 1',
    );
  });
  const line = app.log.find((each) => each.includes('refused for where it led')) ?? '';
  expect(JSON.parse(line)).toMatchObject({ host: '10.0.0.1', port: 80 });
  expect(app.log.join('')).not.toContain('secret-path');
  expect(app.log.join('')).not.toContain(NORMAL);
});

test('ports of other protocols are refused for good, for crawls and callbacks', async () => {
  const hog = await createCrawler(app, 'hog');
  const rid = await hog.push('http://good.test:25/');
  expect((await hog.stored(rid)).json).toMatchObject({
    cb_status: 523,
    failure: 'port_not_allowed',
  });
  const callback = { name: 'mail', callback_url: 'http://127.0.0.1:25/' };
  const made = await app.rest('POST', `/crawler/${NORMAL}`, callback);
  expect([made.status, made.json.error]).toEqual([422, expect.stringContaining('port 25')]);
});
