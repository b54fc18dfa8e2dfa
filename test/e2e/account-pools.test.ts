import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ADMIN, JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { type Proxy, startProxies, startProxy } from '../support/proxy.ts';
import { startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';

const POOLS = `/proxies/${NORMAL}`;
const admin = { authorization: `Bearer ${ADMIN}` };

/** The Normal token of a new account. */
async function otherTenant(app: Pick<TestApp, 'rest'>): Promise<string> {
  const { json } = await app.rest('POST', '/accounts', { name: 'other' }, admin);
  return json.normal_token;
}

async function crawl(
  app: Pick<TestApp, 'rest'>,
  url: string,
  parameters: Readonly<Record<string, string>>,
) {
  const query = { token: NORMAL, url, format: 'json', ...parameters };
  return app.rest('GET', `/?${new URLSearchParams(query)}`);
}

/** The same proxy by another name. */
const named = ({ url }: Proxy, name: string): string => url.replace('127.0.0.1', name);

describe('a pool of an account', () => {
  test('is made, listed, changed and removed, and is used by its account alone', async () => {
    await using proxies = await startProxies({}, {}, {});
    const [own, other, operators] = proxies;
    await using site = await startSite();
    const PROXIES = JSON.stringify({ fast: operators?.url, DE: operators?.url });
    await using app = await startApp({ env: { PROXIES } });
    const stranger = await otherTenant(app);
    const from = async (parameters: Readonly<Record<string, string>>) => {
      const { json, text } = await crawl(app, `${site.url}/page/1`, parameters);
      expect(json, text).toMatchObject({ pc_status: 200 });
      return site.seen.at(-1)?.from;
    };
    const made = await app.rest('POST', POOLS, { name: 'mine', proxies: [own?.url] });
    expect(made.status, made.text).toBe(200);
    expect(made.json).toMatchObject({ name: 'mine', proxy_count: 1 });
    expect(made.json.proxies).toMatchObject([
      { pool: 'mine', proxy: new URL(own?.url ?? '').host, has_credentials: true },
    ]);
    // Both tokens, both engines.
    expect(await from({ proxy: 'mine' })).toBe('127.0.0.11');
    expect(await from({ proxy: 'mine', token: JAVASCRIPT })).toBe('127.0.0.11');
    const denied = await crawl(app, site.url, { proxy: 'mine', token: stranger });
    expect([denied.status, denied.json.error]).toEqual([
      422,
      'proxy: this service has no pool mine; it has DE, direct, fast.',
    ]);
    expect((await app.rest('GET', `/proxies/${stranger}`)).json).toEqual({ pools: [] });
    expect((await app.rest('GET', `/proxies/${stranger}/mine`)).status).toBe(404);

    // One of the same name, or of the same country, comes before the operator's.
    const second = { name: 'fast', proxies: [other?.url], countries: 'DE, FR' };
    expect((await app.rest('POST', POOLS, second)).status).toBe(200);
    expect(await from({ proxy: 'fast' })).toBe('127.0.0.12');
    expect(await from({ country: 'DE' })).toBe('127.0.0.12');
    expect(await from({ proxy: 'fast', token: stranger })).toBe('127.0.0.13');
    expect(await from({ country: 'DE', token: stranger })).toBe('127.0.0.13');
    expect(await app.rest('POST', POOLS, second)).toMatchObject({
      status: 409,
      json: { code: 'pool_exists' },
    });

    const changed = await app.rest('PUT', `${POOLS}/mine`, { proxies: [other?.url] });
    expect(changed.json, changed.text).toMatchObject({ name: 'mine', proxy_count: 1 });
    await eventually(async () => expect(await from({ proxy: 'mine' })).toBe('127.0.0.12'));
    const countries = await app.rest('PUT', `${POOLS}/mine`, { countries: 'ES' });
    expect(countries.json).toMatchObject({ countries: ['ES'], proxy_count: 1 });
    expect(await from({ country: 'ES' })).toBe('127.0.0.12');
    const listed = (await app.rest('GET', POOLS)).json.pools;
    expect(listed.map(({ name }: { name: string }) => name)).toEqual(['fast', 'mine']);
    const { proxies: numbers } = (await app.rest('GET', `${POOLS}/mine`)).json;
    expect(numbers[0].hosts).toMatchObject([{ host: site.host }]);
    expect(Number(numbers[0].hosts[0].pages)).toBeGreaterThan(1);
    expect(Number(numbers[0].hosts[0].bytes)).toBeGreaterThan(100);
    // The operator's lists and metrics are about the operator's pools.
    const installation = (await app.rest('GET', '/installation/proxies', undefined, admin)).json;
    expect(installation.total_count).toBe(2);

    expect((await app.rest('DELETE', `${POOLS}/fast`)).status).toBe(200);
    await eventually(async () => expect(await from({ proxy: 'fast' })).toBe('127.0.0.13'));
    expect((await app.rest('DELETE', `${POOLS}/fast`)).json).toMatchObject({
      code: 'pool_not_found',
    });
  });

  test('is used by crawlers and by the rungs of a ladder', async () => {
    await using proxies = await startProxies({}, {});
    await using site = await startSite({
      routes: {
        '/guarded': ({ socket }, response) => {
          const isBlocked = !socket.remoteAddress?.endsWith('127.0.0.12');
          response.writeHead(isBlocked ? 403 : 200, { 'content-type': 'text/html' });
          response.end(isBlocked ? 'no' : '<p>yes</p>');
        },
      },
    });
    await using app = await startApp();
    const ladder = { escalate: 'direct,pool:low,pool:high' };
    const missing = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'x', ...ladder });
    expect(missing.json.error).toContain('no pool low');
    for (const [at, name] of ['low', 'high'].entries()) {
      await app.rest('POST', POOLS, { name, proxies: [proxies[at]?.url] });
    }
    const climbing = await createCrawler(app, 'climbing', ladder);
    const rid = await climbing.push(`${site.url}/guarded`);
    expect((await climbing.stored(rid)).json).toMatchObject({
      pc_status: 200,
      rung: 'pool:high',
      climbed: 'direct forbidden, pool:low forbidden',
    });
    const metrics = (await app.rest('GET', '/metrics')).text;
    expect(metrics).toContain('queued_crawler_rung_tries_total{rung="pool:other",end="page"} 1');
    expect(metrics).not.toMatch(/pool:(low|high)/);
    const usual = await createCrawler(app, 'usual', { proxy: 'low' });
    await usual.stored(await usual.push(`${site.url}/page/1`));
    expect(site.seen.at(-1)?.from).toBe('127.0.0.11');
    // Its hosts wait no longer for proxies that were replaced: a crawler whose pools change has changed.
    const plain = await createCrawler(app, 'plain');
    const crawlers = [usual, climbing, plain];
    const changes = () =>
      Promise.all(crawlers.map(async (each) => (await each.details()).updated_at as string));
    const before = await changes();
    await app.rest('PUT', `${POOLS}/low`, { proxies: [proxies[1]?.url] });
    await eventually(async () => {
      const after = await changes();
      expect(after.map((at, n) => at !== before[n])).toEqual([true, true, false]);
    });
  });

  test('of a gateway gives it another session with each URL', async () => {
    await using gateway = await startProxy({ anyUser: true });
    await using site = await startSite();
    await using app = await startApp();
    const url = gateway.url.replace('user:', 'acme-{session}-{country}:');
    const pool = { name: 'home', gateway: url, sessions: 50, countries: 'DE,FR' };
    const made = await app.rest('POST', POOLS, pool);
    expect(made.json, made.text).toMatchObject({ gateway: true, proxy_count: 50 });
    await Promise.all(
      Array.from({ length: 10 }, () =>
        crawl(app, `${site.url}/page/1`, { proxy: 'home', country: 'FR' }),
      ),
    );
    for (const user of gateway.users) expect(user).toMatch(/^acme-[0-9a-f]{16}-fr$/);
    expect(new Set(gateway.users).size).toBeGreaterThan(3);
  });

  test('that cannot be is refused, and the reply names the field', async () => {
    await using app = await startApp({ env: { NETWORK_ALLOW: '127.0.0.9:3128' } });
    const SECRET = 'sesame-4711';
    const good = `http://user:${SECRET}@93.184.215.14:3128`;
    const many = Array.from({ length: 1_001 }, (_, n) => `http://p${n}.example:3128`);
    const cases: readonly (readonly [object, string, string])[] = [
      [{ proxies: [good, good, `http://u:${SECRET}@10.0.0.1:3128`] }, 'proxies[2]', '10.0.0.1'],
      [{ proxies: [`socks5://u:${SECRET}@127.0.0.1`] }, 'proxies[0]', 'public'],
      [{ proxies: ['http://127.0.0.9:3129'] }, 'proxies[0]', 'public'],
      [{ proxies: [`https://u:${SECRET}@[::1]:1`] }, 'proxies[0]', 'public'],
      [{ proxies: ['http://169.254.169.254'] }, 'proxies[0]', 'public'],
      [{ proxies: ['http://localhost:3128'] }, 'proxies[0]', 'public'],
      [{ proxies: [good, 'direct'] }, 'proxies[1]', 'URL'],
      [{ proxies: ['direct'] }, 'proxies[0]', 'URL'],
      [{ proxies: [`ftp://u:${SECRET}@a.example`] }, 'proxies[0]', 'URL'],
      [{ proxies: [good.replace('user', '{session}')] }, 'proxies[0]', 'gateway'],
      [{ gateway: `http://{session}:${SECRET}@192.168.1.1:80` }, 'gateway', 'public'],
      [{ gateway: good, proxies: [good] }, 'gateway', 'one of them'],
      [{ gateway: `http://{country}:${SECRET}@a.example` }, 'countries', 'country'],
      [{ gateway: `http://{session}:${SECRET}@a.example`, sessions: 0 }, 'sessions', '1 to'],
      [{ proxies: [good], countries: 'de' }, 'countries', 'upper-case'],
      [{ proxies: [] }, 'proxies', 'must have'],
      [{ proxies: many }, 'proxies', '1000'],
      [
        { proxies: [good, `http://${'u'.repeat(2_100)}:${SECRET}@a.example`] },
        'proxies[1]',
        '2048',
      ],
      [{ proxies: [good], name: 'direct' }, 'name', 'direct'],
      [{ proxies: [good], name: 'tor' }, 'name', 'tor'],
      [{ proxies: [good], name: 'A b' }, 'name', 'lower-case'],
    ];
    for (const [input, field, text] of cases) {
      const reply = await app.rest('POST', POOLS, { name: 'mine', ...input });
      expect(reply.status, JSON.stringify(input)).toBe(422);
      expect(reply.json).toMatchObject({ field });
      expect(reply.json.error).toContain(text);
      expect(reply.text).not.toContain(SECRET);
    }
    const gateway = `http://{session}:${SECRET}@93.184.215.14:3128`;
    await app.rest('POST', POOLS, { name: 'turned', gateway, sessions: 1_000 });
    const turned = await app.rest('PUT', `${POOLS}/turned`, { proxies: [good] });
    expect(turned.json, turned.text).toMatchObject({ gateway: false, proxy_count: 1 });
    await app.rest('DELETE', `${POOLS}/turned`);
    const allowed = await app.rest('POST', POOLS, {
      name: 'a',
      proxies: ['http://127.0.0.9:3128'],
    });
    expect(allowed.status, allowed.text).toBe(200);
    for (let n = 1; n < 20; n += 1)
      await app.rest('POST', POOLS, { name: `p${n}`, proxies: [good] });
    const reply = await app.rest('POST', POOLS, { name: 'more', proxies: [good] });
    expect(reply.json).toMatchObject({ code: 'too_many_proxies' });
    expect((await app.rest('GET', POOLS)).json.pools).toHaveLength(20);
  });

  test('reaches no proxy whose name leads to an address that is not public', async () => {
    await using proxy = await startProxy({});
    await using secure = await startProxy({ kind: 'https' });
    await using socks = await startProxy({ kind: 'socks5' });
    await using site = await startSite();
    await using dns = await startDnsServer({ 'inside.test': ['127.0.0.1'] });
    await using app = await startApp({
      env: {
        NETWORK_ALLOW: site.host,
        DNS_SERVERS: dns.address,
        PROXIES: JSON.stringify({ operators: proxy.url }),
      },
    });
    const all = { proxy, secure, socks };
    for (const [name, each] of Object.entries(all)) {
      const url = named(each, 'inside.test').replace('localhost', 'inside.test');
      const made = await app.rest('POST', POOLS, { name, proxies: [url] });
      expect(made.status, made.text).toBe(200);
      for (const token of [NORMAL, JAVASCRIPT]) {
        const { json } = await crawl(app, `${site.url}/page/1`, { proxy: name, token });
        expect(json).toMatchObject({ failure: 'proxy_unavailable' });
      }
    }
    expect([proxy, secure, socks].map(({ connections }) => connections)).toEqual([0, 0, 0]);
    // The operator may name the same address.
    const { json } = await crawl(app, `${site.url}/page/1`, { proxy: 'operators' });
    expect(json).toMatchObject({ pc_status: 200 });
    // What the operator's pool has opened and keeps is not open to a pool of the account.
    const again = await crawl(app, `${site.url}/page/1`, { proxy: 'proxy' });
    expect(again.json).toMatchObject({ failure: 'proxy_unavailable' });
    // The name itself is known: where the operator allows it, the proxy is used.
    await app.stop();
    const { port } = new URL(proxy.url);
    const env = { NETWORK_ALLOW: `${site.host},inside.test:${port}`, DNS_SERVERS: dns.address };
    await using open = await startApp({ env, dataDir: app.dataDir });
    for (const token of [NORMAL, JAVASCRIPT]) {
      const reply = await crawl(open, `${site.url}/page/1`, { proxy: 'proxy', token });
      expect(reply.json).toMatchObject({ pc_status: 200 });
    }
  });

  test('shows its secrets to nobody: no reply, no log, no record, not the database', async () => {
    const secret = 'sesame-seed-4711';
    await using proxy = await startProxy({ fault: () => 'login' });
    await using site = await startSite();
    await using app = await startApp({ env: { LOG_LEVEL: 'debug' } });
    const url = proxy.url.replace(':password@', `:${secret}@`);
    const socks = url.replace('http:', 'socks5:');
    const gateway = url.replace('user', '{session}');
    const texts = [
      (await app.rest('POST', POOLS, { name: 'mine', proxies: [url, socks] })).text,
      (await app.rest('POST', POOLS, { name: 'gate', gateway })).text,
      (await app.rest('PUT', `${POOLS}/mine`, { proxies: [socks, url] })).text,
      (await crawl(app, site.url, { proxy: 'mine' })).text,
      (await crawl(app, site.url, { proxy: 'gate', token: JAVASCRIPT })).text,
      (await app.rest('GET', POOLS)).text,
      (await app.rest('GET', `${POOLS}/mine`)).text,
      (await app.rest('GET', '/metrics')).text,
    ];
    expect(proxy.connections).toBeGreaterThan(0);
    const { records } = (await app.rest('GET', `/audit/${NORMAL}`)).json;
    expect(records).toMatchObject([
      { method: 'UpdateProxyPool', crawler: '', by: 'normal' },
      { method: 'CreateProxyPool', crawler: '' },
      { method: 'CreateProxyPool', crawler: '' },
    ]);
    expect(JSON.parse(records[1].changes)).toMatchObject({ pool: 'gate' });
    texts.push(JSON.stringify(records), ...app.log);
    await app.stop();
    for (const name of ['queued-crawler.db', 'queued-crawler.db-wal']) {
      const kept = await readFile(join(app.dataDir, name), 'latin1').catch(() => '');
      texts.push(kept);
    }
    for (const text of texts) expect(text.includes(secret), text.slice(0, 80)).toBe(false);
    await using after = await startApp({ dataDir: app.dataDir });
    expect((await after.rest('GET', `${POOLS}/mine`)).json).toMatchObject({ proxy_count: 2 });
  });

  test('that answers with what it likes harms no other account', async () => {
    await using site = await startSite({
      routes: { '/robots.txt': (_request, response) => response.end('User-agent: *\nAllow: /\n') },
    });
    await using liar = await startSite({
      routes: {
        '/robots.txt': (_request, response) => response.end('User-agent: *\nDisallow: /\n'),
      },
    });
    // Leads to another site than the one that is asked for.
    await using hostile = await startProxy({ target: liar.host });
    await using good = await startProxy({});
    await using app = await startApp({ env: { PROXIES: JSON.stringify({ fast: good.url }) } });
    await app.rest('POST', POOLS, { name: 'fast', proxies: [hostile.url] });
    const polite = { proxy: 'fast', politeness: { robots_txt: true } };
    const crawler = await createCrawler(app, 'crawler', polite);
    const refused = await crawler.stored(await crawler.push(`${site.url}/page/1`));
    expect(refused.json).toMatchObject({ failure: 'robots_disallowed' });
    const token = await otherTenant(app);
    await app.rest('POST', `/crawler/${token}`, { name: 'theirs', ...polite });
    const query = new URLSearchParams({ token, crawler: 'theirs', url: `${site.url}/page/1` });
    const { json } = await app.rest('GET', `/?${query}&callback=true`);
    await eventually(async () => {
      const found = await app.rest('GET', `/storage?token=${token}&rid=${json.rid}&format=json`);
      expect(found.json).toMatchObject({ pc_status: 200 });
    });
  });
});

describe.skipIf(mongodbUri === '')('two processes on one database', () => {
  test('use a new pool at once, and its changes within seconds', async () => {
    await using database = testDatabase();
    await using proxies = await startProxies({}, {});
    await using site = await startSite();
    const env = { MONGODB_URI: database.uri };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    const from = async () => {
      const { json } = await crawl(second, `${site.url}/page/1`, { proxy: 'mine' });
      expect(json).toMatchObject({ pc_status: 200 });
      return site.seen.at(-1)?.from;
    };
    await first.rest('POST', POOLS, { name: 'mine', proxies: [proxies[0]?.url] });
    expect(await from()).toBe('127.0.0.11');
    await first.rest('PUT', `${POOLS}/mine`, { proxies: [proxies[1]?.url] });
    await eventually(async () => expect(await from()).toBe('127.0.0.12'));
    await first.rest('DELETE', `${POOLS}/mine`);
    await eventually(async () => {
      expect((await crawl(second, site.url, { proxy: 'mine' })).status).toBe(422);
    });
    // Both at once: none of the pools is lost.
    const names = Array.from({ length: 10 }, (_, n) => `p${n}`);
    await Promise.all(
      names.map((name, n) =>
        (n % 2 === 0 ? first : second).rest('POST', POOLS, { name, proxies: [proxies[0]?.url] }),
      ),
    );
    const { pools } = (await first.rest('GET', POOLS)).json;
    expect(pools.map(({ name }: { name: string }) => name)).toEqual(names);
  });
});
