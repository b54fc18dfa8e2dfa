import { describe, expect, test } from 'vitest';
import { ADMIN, JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/listen.ts';
import { type ProxyFault, startProxies, urlsOf } from '../support/proxy.ts';
import { type SiteRoute, startSite } from '../support/site.ts';

const startWith = (proxies: object) => startApp({ env: { PROXIES: JSON.stringify(proxies) } });

const linesOf = (app: TestApp, text: string): readonly string[] =>
  app.log.filter((line) => line.includes(text));

/** Answers with a captcha to these addresses, with a page to others. */
function blocking(...addresses: readonly string[]): SiteRoute {
  return ({ socket }, response) => {
    const blocked = addresses.includes(socket.remoteAddress ?? '');
    response.writeHead(blocked ? 403 : 200, {
      'content-type': 'text/html',
      ...(blocked ? { 'cf-mitigated': 'challenge' } : {}),
    });
    response.end(blocked ? '<title>Just a moment...</title>' : '<p>the page</p>');
  };
}

async function pushMany(
  crawler: Awaited<ReturnType<typeof createCrawler>>,
  url: string,
  count: number,
): Promise<readonly string[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => crawler.push(`${url}?n=${n}`)));
}

async function activityOf(crawler: Awaited<ReturnType<typeof createCrawler>>) {
  return (await crawler.details()).activity;
}

describe('a proxy that fails', () => {
  test.each<ProxyFault | 'nobody'>(['nobody', 'login'])(
    '(%s) costs no URL a try: others are used at once, and it only after a cool-down',
    async (fault) => {
      const dead = fault === 'nobody' ? undefined : fault;
      await using proxies = await startProxies({ fault: () => dead }, {});
      await using site = await startSite();
      const [bad, good] = proxies;
      const url = fault === 'nobody' ? `http://127.0.0.1:${await freePort()}` : bad?.url;
      await using app = await startWith({ fast: [url, good?.url] });
      const crawler = await createCrawler(app, 'crawler', { proxy: 'fast', max_retries: 0 });
      await pushMany(crawler, `${site.url}/page/1`, 30);
      await eventually(async () =>
        expect(await activityOf(crawler)).toMatchObject({ completed: 30, failed: 0 }),
      );
      expect(site.seen.map(({ from }) => from)).not.toContain('127.0.0.11');
      // Those in flight at the start, not one for each URL.
      if (dead !== undefined) expect(bad?.connections).toBeLessThanOrEqual(20);
    },
  );

  test.each<ProxyFault>(['refuses', 'closes', 'page'])(
    '(%s) once it is to connect to a target has a cool-down while others reach the host',
    async (fault) => {
      await using proxies = await startProxies({ fault: () => fault }, {});
      await using site = await startSite();
      const [bad] = proxies;
      await using app = await startWith({ fast: urlsOf(proxies) });
      const crawler = await createCrawler(app, 'crawler', { proxy: 'fast' });
      await pushMany(crawler, `${site.url}/page/1`, 30);
      await eventually(async () =>
        expect(await activityOf(crawler)).toMatchObject({ completed: 30, failed: 0 }),
      );
      expect(site.seen.map(({ from }) => from)).not.toContain('127.0.0.11');
      expect(bad?.connections).toBeLessThanOrEqual(20);
    },
  );

  test('is used again when it works again', async () => {
    let fault: ProxyFault | undefined = 'login';
    await using proxies = await startProxies({ fault: () => fault });
    await using site = await startSite();
    await using app = await startWith({ fast: urlsOf(proxies) });
    const crawler = await createCrawler(app, 'crawler', { proxy: 'fast', max_retries: 0 });
    await pushMany(crawler, `${site.url}/page/1`, 12);
    await eventually(() =>
      expect(linesOf(app, 'no proxy of the pool may be used now')).toHaveLength(1),
    );
    const { connections } = proxies[0] ?? { connections: 0 };
    expect(connections).toBeLessThanOrEqual(12);
    const { json } = await app.rest('GET', `/crawler/${NORMAL}/crawler/hosts`);
    expect(JSON.stringify(json)).toContain('proxy_unavailable');
    await eventually(async () =>
      expect(await activityOf(crawler)).toMatchObject({ waiting: 12, retrying: 0, failed: 0 }),
    );
    fault = undefined;
    await eventually(() => expect(site.hits()).toBe(12));
    expect(linesOf(app, 'a proxy of the pool may be used again')).toHaveLength(1);
    await eventually(async () =>
      expect(await activityOf(crawler)).toMatchObject({ completed: 12 }),
    );
  });
});

describe.each([
  ['http', NORMAL],
  ['http', JAVASCRIPT],
  ['socks5', NORMAL],
  ['socks5', JAVASCRIPT],
] as const)('proxies (%s, token %s) that close the connection for a dead target', (kind, token) => {
  test('fail its URL, and serve other accounts', async () => {
    await using proxies = await startProxies({ kind }, { kind });
    await using site = await startSite();
    await using app = await startWith({ fast: urlsOf(proxies) });
    const admin = { authorization: `Bearer ${ADMIN}` };
    const dead = `http://127.0.0.1:${await freePort()}`;
    const crawl = async (url: string, by: string) => {
      const query = new URLSearchParams({ token: by, url, proxy: 'fast', format: 'json' });
      return (await app.rest('GET', `/?${query}`)).json;
    };
    for (const url of [dead, `${dead}/2`])
      expect(await crawl(url, token)).toMatchObject({ failure: 'proxy_refused' });
    expect(await crawl('http://missing.test/', token)).toMatchObject({ failure: 'name_not_found' });
    const listed = await app.rest('GET', '/installation/proxies', undefined, admin);
    expect(listed.json.proxies.map(({ trouble }: { trouble?: string }) => trouble)).toEqual([
      undefined,
      undefined,
    ]);
    const other = await app.rest('POST', '/accounts', { name: 'other' }, admin);
    const page = await crawl(`${site.url}/page/1`, other.json.normal_token);
    expect(page).toMatchObject({ cb_status: 200 });
  });
});

test('a URL ends after its retries when the proxies close the connection for it', async () => {
  await using proxies = await startProxies({}, {});
  await using app = await startWith({ fast: urlsOf(proxies) });
  const crawler = await createCrawler(app, 'crawler', { proxy: 'fast', max_retries: 1 });
  await crawler.push(`http://127.0.0.1:${await freePort()}/`);
  await eventually(async () =>
    expect(await activityOf(crawler)).toMatchObject({ failed: 1, waiting: 0 }),
  );
});

describe('a site that blocks an address', () => {
  test('is asked by others, and no retry goes through the one it has blocked', async () => {
    await using proxies = await startProxies({}, {}, {});
    await using site = await startSite({ routes: { '/page': blocking('127.0.0.11') } });
    await using app = await startWith({ fast: urlsOf(proxies) });
    const crawler = await createCrawler(app, 'crawler', { proxy: 'fast' });
    await pushMany(crawler, `${site.url}/page`, 30);
    await eventually(async () =>
      expect(await activityOf(crawler)).toMatchObject({ completed: 30, failed: 0 }),
    );
    const tries = new Map<string, string[]>();
    for (const { path, from } of site.seen) tries.set(path, [...(tries.get(path) ?? []), from]);
    expect(tries.size).toBe(30);
    for (const addresses of tries.values()) {
      // The last is the one that got the page.
      expect(addresses.at(-1)).not.toBe('127.0.0.11');
      for (const [at, address] of addresses.entries()) expect(address).not.toBe(addresses[at + 1]);
    }
  });

  test('is asked by the same proxies for other accounts and hosts', async () => {
    await using proxies = await startProxies({});
    await using blocked = await startSite({ routes: { '/page': blocking('127.0.0.11') } });
    await using site = await startSite();
    await using app = await startWith({ fast: urlsOf(proxies) });
    const crawler = await createCrawler(app, 'crawler', { proxy: 'fast' });
    await crawler.push(`${blocked.url}/page`);
    await eventually(() => expect(blocked.hits()).toBe(1));
    await pushMany(crawler, `${site.url}/page/1`, 5);
    await eventually(() => expect(site.hits()).toBe(5));
    const last = Math.max(...site.seen.map(({ at }) => at.getTime()));
    expect(blocked.seen.filter(({ at }) => at.getTime() < last)).toHaveLength(1);
  });
});
