import { expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../../support/app.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { PROXY_FAULTS, type ProxyFault, startProxy } from '../../support/proxy.ts';
import { seededNoise } from '../../support/seed.ts';
import { startSite } from '../../support/site.ts';

/** The Normal token of a new account. */
async function otherTenant(app: TestApp): Promise<string> {
  const admin = { authorization: `Bearer ${ADMIN}` };
  const { json } = await app.rest('POST', '/accounts', { name: 'other' }, admin);
  return json.normal_token;
}

test.each(['the operator', 'an account'])(
  'bad proxies of every kind that %s has keep nobody else waiting, and take no URL',
  async (owner) => {
    const noise = seededNoise('bad proxies');
    const faults = [...PROXY_FAULTS, ...PROXY_FAULTS].sort(() => noise.int(3) - 1);
    const bad = await Promise.all(
      faults.map((fault, n) =>
        startProxy({ kind: n % 2 === 0 ? 'http' : 'socks5', fault: () => fault }),
      ),
    );
    await using stack = new AsyncDisposableStack();
    for (const proxy of bad) stack.use(proxy);
    await using good = await startProxy({ from: '127.0.0.11' });
    await using site = await startSite();
    await using quiet = await startSite();
    const all = {
      bad: bad.map(({ url }) => url),
      mixed: [...bad.slice(0, 4).map(({ url }) => url), good.url],
    };
    await using app = await startApp({
      env: {
        CRAWL_TIMEOUT_SECONDS: '5',
        PROXIES: JSON.stringify({ ...(owner === 'the operator' ? all : {}), good: good.url }),
      },
    });
    if (owner === 'an account') {
      for (const [name, proxies] of Object.entries(all)) {
        const made = await app.rest('POST', `/proxies/${NORMAL}`, { name, proxies });
        expect(made.status, made.text).toBe(200);
      }
    }
    const tenant = await createCrawler(app, 'tenant', { proxy: 'bad', concurrency: 100 });
    const mixed = await createCrawler(app, 'mixed', { proxy: 'mixed', concurrency: 20 });
    const push = (crawler: typeof tenant, count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, n) => crawler.push(`${site.url}/page/1?n=${n}`)),
      );
    await push(tenant, 100);
    await push(mixed, 20);
    // At the same time another tenant uses the good proxy, and none.
    const token = await otherTenant(app);
    for (let n = 0; n < 10; n += 1) {
      for (const proxy of ['good', 'direct']) {
        const query = { token, url: `${quiet.url}/page/${n}`, proxy, format: 'json' };
        const { json } = await app.rest('GET', `/?${new URLSearchParams(query)}`);
        expect(json, proxy).toMatchObject({ pc_status: 200 });
      }
    }
    // With one good proxy among them, all URLs arrive.
    await eventually(async () => {
      const { activity } = await mixed.details();
      expect(activity).toMatchObject({ completed: 20, failed: 0 });
    });
    // Without one, none fails and none is lost.
    const { activity } = await tenant.details();
    expect(activity).toMatchObject({ pushed: 100, failed: 0 });
    expect(activity.waiting + activity.running + activity.retrying + activity.completed).toBe(100);
  },
);

test('what a proxy puts into an answer reaches no other host and no address of ours', async () => {
  await using site = await startSite({
    routes: {
      // As a proxy between would answer for plain HTTP.
      '/injected': (_request, response) => {
        response.writeHead(302, {
          location: 'http://169.254.169.254/latest/meta-data/',
          'set-cookie': 'stolen=1; Domain=bank.test',
        });
        response.end();
      },
    },
  });
  let fault: ProxyFault | undefined;
  await using proxy = await startProxy({ target: site.host, fault: () => fault });
  await using app = await startApp({ env: { PROXIES: JSON.stringify({ fast: proxy.url }) } });
  const crawl = async (path: string) => {
    const query = { token: NORMAL, url: `${site.url}${path}`, proxy: 'fast', format: 'json' };
    const session = { session: 'one' };
    return (await app.rest('GET', `/?${new URLSearchParams({ ...query, ...session })}`)).json;
  };
  expect(await crawl('/injected')).toMatchObject({ pc_status: 523 });
  expect(proxy.asked.filter((asked) => asked.startsWith('169.254'))).toEqual([]);
  expect((await crawl('/echo')).body).not.toContain('stolen');
  fault = 'floods';
  await using other = await startSite();
  const query = { token: NORMAL, url: other.url, proxy: 'fast', format: 'json' };
  const { json } = await app.rest('GET', `/?${new URLSearchParams(query)}`);
  expect(json).toMatchObject({ failure: 'proxy_unavailable' });
});
