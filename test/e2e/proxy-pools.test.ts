import { describe, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser } from '../support/browser-crawls.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { startProxies, startProxy, urlsOf } from '../support/proxy.ts';
import { startSite } from '../support/site.ts';

const startWith = (proxies: object, env: Readonly<Record<string, string>> = {}) =>
  startApp({ env: { PROXIES: JSON.stringify(proxies), ...env } });

async function crawl(app: TestApp, url: string, parameters: Readonly<Record<string, string>>) {
  const query = new URLSearchParams({ token: NORMAL, url, format: 'json', ...parameters });
  return app.rest('GET', `/?${query}`);
}

test.each([
  ['plain', NORMAL],
  ['browser', JAVASCRIPT],
])('a proxy of the operator is looked up at DNS_SERVERS in the %s engine', async (_, token) => {
  await using proxy = await startProxy({});
  await using site = await startSite();
  await using dns = await startDnsServer({ 'proxy.test': ['127.0.0.1'] });
  const named = proxy.url.replace('127.0.0.1', 'proxy.test');
  await using app = await startWith({ fast: named }, { DNS_SERVERS: dns.address });
  const { json } = await crawl(app, `${site.url}/page/1`, { proxy: 'fast', token });
  expect(json).toMatchObject({ pc_status: 200 });
  expect(proxy.asked).toContain(site.host);
});

describe('a pool', () => {
  test('is that of the crawler, unless the push names another one or none', async () => {
    await using proxies = await startProxies({}, { kind: 'socks5' }, {});
    await using site = await startSite();
    const [a, b, c] = proxies;
    await using app = await startWith({ mixed: [a?.url, b?.url], other: c?.url });
    const crawler = await createCrawler(app, 'crawler', { proxy: 'mixed' });
    expect(await crawler.details()).toMatchObject({ proxy: 'mixed' });
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => crawler.push(`${site.url}/page/1?n=${n}`)),
    );
    await eventually(() => expect(site.hits()).toBe(30));
    const addresses = () => [...new Set(site.seen.map(({ from }) => from))].toSorted();
    expect(addresses()).toEqual(['127.0.0.11', '127.0.0.12']);
    site.reset();
    await crawler.push(`${site.url}/page/1`, '&proxy=direct');
    await crawler.push(`${site.url}/page/2`, '&proxy=other');
    await eventually(() => expect(addresses()).toEqual(['127.0.0.1', '127.0.0.13']));
    site.reset();
    await app.rest('PUT', crawler.path, { proxy: '' });
    expect(await crawler.details()).not.toHaveProperty('proxy');
    await crawler.push(`${site.url}/page/3`);
    await eventually(() => expect(addresses()).toEqual(['127.0.0.1']));
  });

  test('is picked by country, of which a setting for each country is one', async () => {
    await using proxies = await startProxies({}, {}, {});
    await using site = await startSite();
    const [german, french, home] = proxies;
    await using app = await startWith({
      DE: german?.url,
      FR: french?.url,
      home: { proxies: [home?.url], countries: ['DE', 'ES'] },
    });
    const from = async (parameters: Readonly<Record<string, string>>) => {
      const { json, status } = await crawl(app, `${site.url}/page/1`, parameters);
      expect([status, json.pc_status]).toEqual([200, 200]);
      return site.seen.at(-1)?.from;
    };
    expect(await from({ country: 'FR' })).toBe('127.0.0.12');
    expect(await from({ country: 'ES' })).toBe('127.0.0.13');
    expect(await from({ country: 'DE', proxy: 'home' })).toBe('127.0.0.13');
    site.reset();
    await Promise.all(Array.from({ length: 20 }, () => from({ country: 'DE' })));
    const german20 = new Set(site.seen.map((seen) => seen.from));
    expect([...german20].toSorted()).toEqual(['127.0.0.11', '127.0.0.13']);
  });

  test('that the operator does not have is refused, and the reply says what there is', async () => {
    await using site = await startSite();
    await using app = await startWith({ fast: 'http://user:password@127.0.0.1:1', DE: 'direct' });
    const made = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'x', proxy: 'slow' });
    expect([made.status, made.json.error]).toEqual([
      422,
      'proxy: this service has no pool slow; it has DE, direct, fast.',
    ]);
    const crawler = await createCrawler(app, 'fine', { proxy: 'fast' });
    for (const reply of [
      await crawler.tryPush(site.url, '&proxy=slow'),
      await crawl(app, site.url, { proxy: 'slow' }),
    ]) {
      expect([reply.status, reply.json.error]).toEqual([422, made.json.error]);
    }
    const country = await crawler.tryPush(site.url, '&country=DE');
    expect([country.status, country.json.error]).toEqual([
      422,
      'country: the pool fast has no proxy for DE.',
    ]);
    expect(site.hits()).toBe(0);
  });

  test('of one gateway gives it another session with each URL, and the country', async () => {
    await using gateway = await startProxy({ anyUser: true });
    await using site = await startSite();
    const template = gateway.url.replace('user:', 'acme-{session}-{country}:');
    await using app = await startWith({
      home: { gateway: template, sessions: 50, countries: ['DE', 'FR'] },
    });
    const crawler = await createCrawler(app, 'crawler', { proxy: 'home' });
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        crawler.push(`${site.url}/page/1?n=${n}`, '&country=FR'),
      ),
    );
    await eventually(() => expect(site.hits()).toBe(20));
    for (const user of gateway.users) expect(user).toMatch(/^acme-[0-9a-f]{16}-fr$/);
    expect(new Set(gateway.users).size).toBeGreaterThan(5);
  });

  test.each(['http', 'socks5'] as const)('of the kind %s serves the browser', async (kind) => {
    await using proxies = await startProxies({ kind });
    await using site = await startSite();
    await using app = await startWith({ fast: urlsOf(proxies) });
    expect(await crawlInBrowser(app, `${site.url}/page/1`, { proxy: 'fast' })).toMatchObject({
      pc_status: 200,
    });
    expect(site.seen.map(({ from }) => from)).not.toContain('127.0.0.1');
    expect(proxies[0]?.asked).toContain(site.host);
  });

  test('leads to no address that is not public, in either engine', async () => {
    await using proxies = await startProxies({}, { kind: 'socks5' });
    await using site = await startSite();
    const [plain, socks] = proxies;
    await using app = await startWith(
      { plain: plain?.url, socks: socks?.url },
      { NETWORK_ALLOW: '' },
    );
    for (const proxy of ['plain', 'socks']) {
      for (const token of [NORMAL, JAVASCRIPT]) {
        const { json } = await crawl(app, site.url, { proxy, token });
        expect(json).toMatchObject({ pc_status: 523, failure: 'address_not_allowed' });
      }
    }
    expect(proxies.flatMap(({ asked }) => asked)).toEqual([]);
  });
});

test('a password of a proxy is in no reply, no metric and no line of the log', async () => {
  await using site = await startSite();
  await using refusing = await startProxy({ fault: () => 'login' });
  const secret = 'sesame-seed-4711';
  const url = refusing.url.replace(':password@', `:${secret}@`);
  await using app = await startWith({ fast: [url], DE: url }, { LOG_LEVEL: 'debug' });
  const crawler = await createCrawler(app, 'crawler', { proxy: 'fast' });
  const rid = await crawler.push(site.url);
  await eventually(() => expect(refusing.connections).toBeGreaterThan(0));
  const texts = [
    (await crawl(app, site.url, { proxy: 'fast' })).text,
    (await crawl(app, site.url, { country: 'DE', token: JAVASCRIPT })).text,
    JSON.stringify(await crawler.details()),
    (await crawler.find(rid)).text,
    (await app.rest('GET', '/metrics')).text,
    (await app.rest('GET', `/hosts/${NORMAL}/crawler`)).text,
    ...app.log,
  ];
  for (const text of texts) expect(text).not.toContain(secret);
});
