import { expect, test } from 'vitest';
import { ADMIN, JAVASCRIPT, NORMAL, startApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/listen.ts';
import { startProxy } from '../support/proxy.ts';
import { startSite } from '../support/site.ts';

const admin = { authorization: `Bearer ${ADMIN}` };

test('an operator sees what each proxy does, and no tenant and no password', async () => {
  await using proxy = await startProxy({});
  await using site = await startSite({
    routes: {
      '/blocks': (_request, response) => {
        response.writeHead(403, { 'cf-mitigated': 'challenge', 'content-type': 'text/html' });
        response.end('<title>Just a moment...</title>');
      },
      '/large': (_request, response) => response.end('x'.repeat(200_000)),
    },
  });
  const dead = `http://user:password@127.0.0.1:${await freePort()}`;
  await using app = await startApp({
    env: { PROXIES: JSON.stringify({ fast: [proxy.url], dead: [dead], DE: 'direct' }) },
  });
  const crawl = async (path: string, pool: string, token = NORMAL) => {
    const query = { token, url: `${site.url}${path}`, proxy: pool, format: 'json' };
    return (await app.rest('GET', `/?${new URLSearchParams(query)}`)).json;
  };
  const list = async (query = '') =>
    (await app.rest('GET', `/installation/proxies${query}`, undefined, admin)).json;
  await crawl('/large', 'fast');
  await eventually(async () => {
    const [row] = (await list('?pool=fast')).proxies;
    expect(Number(row.received_bytes)).toBeGreaterThan(200_000);
  });
  await crawl('/large', 'fast', JAVASCRIPT);
  await eventually(async () => {
    const [row] = (await list('?pool=fast')).proxies;
    expect(Number(row.received_bytes)).toBeGreaterThan(400_000);
    expect(Number(row.pages)).toBe(2);
  });
  await crawl('/blocks', 'fast');
  expect(await crawl('/page/1', 'dead')).toMatchObject({ failure: 'proxy_unavailable' });
  const listed = await list();
  expect(listed.total_count).toBe(2);
  expect(listed.proxies).toMatchObject([
    { pool: 'fast', proxy: new URL(proxy.url).host, blocks: 1, blocked_at: [site.host] },
    { pool: 'dead', proxy: new URL(dead).host, failures: 1, trouble: 'proxy_failed' },
  ]);
  expect(Date.parse(listed.proxies[1].retry_at)).toBeGreaterThan(Date.now() - 1_000);
  expect(listed.hosts).toMatchObject([
    { pool: 'fast', host: site.host, blocks: 1 },
    { pool: 'dead', host: site.host, pages: 0, bytes: 0 },
  ]);
  const [ofSite] = listed.hosts;
  expect(Number(ofSite.pages)).toBe(2);
  expect(Number(ofSite.bytes)).toBeGreaterThan(400_000);
  expect(JSON.stringify(listed)).not.toContain('password');
  const stranger = { authorization: `Bearer ${NORMAL}` };
  const refused = await app.rest('GET', '/installation/proxies', undefined, stranger);
  expect(refused.status).toBeGreaterThanOrEqual(401);
  const metrics = (await app.rest('GET', '/metrics')).text;
  for (const line of [
    'queued_crawler_proxies{pool="dead",state="cooling"} 1',
    'queued_crawler_proxies{pool="fast",state="usable"} 1',
    `queued_crawler_proxy_pages_total{pool="fast",proxy="${new URL(proxy.url).host}"} 2`,
    `queued_crawler_proxy_blocks_total{pool="fast",proxy="${new URL(proxy.url).host}"} 1`,
    `queued_crawler_proxy_host_pages_total{pool="fast",host="${site.host}"} 2`,
    `queued_crawler_proxy_host_blocks_total{pool="fast",host="${site.host}"} 1`,
    `queued_crawler_proxy_host_failures_total{pool="dead",host="${site.host}"} 1`,
    `queued_crawler_proxy_host_bytes_total{pool="fast",host="${site.host}"} ${ofSite.bytes}`,
    'queued_crawler_proxy_waits_total{pool="dead"} 1',
  ]) {
    expect(metrics).toContain(line);
  }
});

test.each([
  ['plain', NORMAL],
  ['browser', JAVASCRIPT],
])('an operator sees why proxies fail in the %s engine, by status or code', async (_, token) => {
  await using login = await startProxy({ fault: () => 'login' });
  await using unpaid = await startProxy({ refuseWith: 402 });
  await using socks = await startProxy({ kind: 'socks5', fault: () => 'login' });
  const nobody = `http://user:password@127.0.0.1:${await freePort()}`;
  const pools = { login: login.url, unpaid: unpaid.url, socks: socks.url, nobody };
  await using app = await startApp({ env: { PROXIES: JSON.stringify(pools) } });
  for (const pool of Object.keys(pools)) {
    const query = { token, url: 'http://127.0.0.1/', proxy: pool, format: 'json' };
    expect((await app.rest('GET', `/?${new URLSearchParams(query)}`)).status).toBe(200);
  }
  const { json } = await app.rest('GET', '/installation/proxies', undefined, admin);
  const shown: readonly { pool: string; last_failure: string }[] = json.proxies;
  expect(Object.fromEntries(shown.map((each) => [each.pool, each.last_failure]))).toEqual({
    login: 'proxy_failed (407)',
    socks: 'proxy_failed (UND_ERR_SOCKS5_AUTH_FAILED)',
    nobody: 'proxy_failed (ECONNREFUSED)',
    unpaid: 'proxy_refused (402)',
  });
  const waits = app.log.filter((line) => line.includes('no proxy of the pool may be used now'));
  expect(waits.map((line) => JSON.parse(line).lastFailure)).toEqual([
    'proxy_failed (407)',
    'proxy_failed (UND_ERR_SOCKS5_AUTH_FAILED)',
    'proxy_failed (ECONNREFUSED)',
  ]);
});
