import { expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type ProxyFault, startProxies } from '../support/proxy.ts';
import { type Site, startSite } from '../support/site.ts';

/** Five proxies, of which each leads out by an address of its own. */
const startFive = (faultAt?: (address: string) => ProxyFault | undefined) =>
  startProxies(
    ...[11, 12, 13, 14, 15].map((last) => ({ fault: () => faultAt?.(`127.0.0.${last}`) })),
  );

const startWith = (proxies: readonly { readonly url: string }[]) =>
  startApp({ env: { PROXIES: JSON.stringify({ fast: proxies.map(({ url }) => url) }) } });

async function visit(app: TestApp, url: string, parameters: Readonly<Record<string, string>>) {
  const given = { token: NORMAL, url, format: 'json', proxy: 'fast', ...parameters };
  const { json, status } = await app.rest('GET', `/?${new URLSearchParams(given)}`);
  expect([status, json.pc_status]).toEqual([200, 200]);
  return json;
}

test.each([
  ['plain', NORMAL],
  ['browser', JAVASCRIPT],
])('a session has one proxy and one set of cookies in the %s engine', async (_, token) => {
  await using proxies = await startFive();
  await using site = await startSite();
  await using app = await startWith(proxies);
  const at = (session: string, path: string) =>
    visit(app, `${site.url}${path}`, { session, token });
  await at('one', '/cookies/set?visitor=one');
  await at('two', '/cookies/set?visitor=two');
  for (const name of ['one', 'two', 'one']) {
    site.reset();
    const { body } = await at(name, '/echo');
    expect(body).toContain(`visitor=${name}`);
  }
  site.reset();
  for (let n = 0; n < 4; n += 1) await at('one', `/page/${n}`);
  expect(new Set(site.seen.map(({ from }) => from)).size).toBe(1);
  const addresses = new Set<string>();
  // Ports of proxies differ from run to run, and so does the proxy that a session has.
  for (let n = 0; n < 40 && addresses.size < 2; n += 1) {
    site.reset();
    await at(`visitor-${n}`, '/page/1');
    for (const { from } of site.seen) addresses.add(from);
  }
  expect(addresses.size).toBeGreaterThan(1);
});

test('a session whose proxy fails continues through another, and takes no cookies there', async () => {
  let failing = '';
  await using proxies = await startFive((address) => (address === failing ? 'login' : undefined));
  await using site = await startSite();
  await using app = await startWith(proxies);
  const at = (on: Site, path: string) => visit(app, `${on.url}${path}`, { session: 'one' });
  // Cookies know no ports, so both sites get them.
  await using other = await startSite();
  await at(site, '/cookies/set?visitor=one');
  failing = site.seen.at(-1)?.from ?? '';
  await at(other, '/echo');
  expect(other.seen.at(-1)?.from).not.toBe(failing);
  expect(other.seen.at(-1)?.headers.cookie).toBeUndefined();
  await at(other, '/cookies/set?visitor=elsewhere');
  expect((await at(other, '/echo')).body).toContain('visitor=elsewhere');
});

test('queued URLs of a session go through its proxy, too; another device is another visitor', async () => {
  await using proxies = await startFive();
  await using site = await startSite();
  await using app = await startWith(proxies);
  const crawler = await createCrawler(app, 'crawler', { proxy: 'fast' });
  await Promise.all(
    Array.from({ length: 20 }, (_, n) => crawler.push(`${site.url}/page/1?n=${n}`, '&session=one')),
  );
  await eventually(() => expect(site.hits()).toBe(20));
  expect(new Set(site.seen.map(({ from }) => from)).size).toBe(1);
  await visit(app, `${site.url}/cookies/set?a=1`, { session: 'one' });
  const { body } = await visit(app, `${site.url}/echo`, { session: 'one', device: 'mobile' });
  expect(body).not.toContain('a=1');
  const both = await crawler.tryPush(site.url, '&session=one&cookies_session=two');
  expect([both.status, both.json.error]).toEqual([
    422,
    'session cannot be combined with cookies_session.',
  ]);
});
