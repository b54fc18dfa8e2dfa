import { describe, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startProxies } from '../support/proxy.ts';
import { startSite } from '../support/site.ts';

const POOLS = `/proxies/${NORMAL}`;

function crawl(
  app: Pick<TestApp, 'rest'>,
  url: string,
  parameters: Readonly<Record<string, string>>,
) {
  const query = { token: NORMAL, url, format: 'json', ...parameters };
  return app.rest('GET', `/?${new URLSearchParams(query)}`);
}

/** What the set-up of the service says of proxies. */
async function setupOf(app: Pick<TestApp, 'rest'>) {
  const authorization = `Bearer ${ADMIN}`;
  const { json } = await app.rest('GET', '/installation/setup', undefined, { authorization });
  return json.items.find((each: { name: string }) => each.name === 'proxies');
}

describe('a pool of an account', () => {
  test('is in the set-up of the service, which names accounts whose key is missing', async () => {
    await using first = await startApp({ env: { PROXY_SEAL_KEY: 'first-of-the-operator-4711' } });
    expect(await setupOf(first)).toMatchObject({
      state: 'missing',
      finding: 'There are no proxies.',
    });
    const made = await first.rest('POST', POOLS, {
      name: 'mine',
      proxies: ['http://127.0.0.1:3128'],
    });
    expect(made.status, made.text).toBe(200);
    expect(await setupOf(first)).toMatchObject({
      state: 'ok',
      finding: 'There are proxies of 1 account, and none of the operator.',
    });
    await first.stop();
    const PROXY_SEAL_KEY = 'second-of-the-operator-4711';
    const PROXIES = JSON.stringify({ op: 'http://127.0.0.1:3128' });
    for (const [env, operators] of [
      [{ PROXY_SEAL_KEY }, ''],
      [{ PROXY_SEAL_KEY, PROXIES }, 'There are proxies for op (1). '],
    ] as const) {
      await using second = await startApp({ dataDir: first.dataDir, env });
      expect(await setupOf(second)).toMatchObject({
        state: 'failed',
        finding: `${operators}No key of PROXY_SEAL_KEY opens the pools of 1 account (default).`,
        advice: expect.stringContaining('pools_sealed'),
        settings: ['PROXIES', 'PROXY_SEAL_KEY'],
      });
      const { stdout } = await runCommandLine(['doctor'], {
        env: { QUEUED_CRAWLER_URL: second.url, QUEUED_CRAWLER_ADMIN_TOKEN: ADMIN },
      });
      expect(stdout).toMatch(/proxies +failed .*No key of PROXY_SEAL_KEY opens the pools/);
      await second.stop();
    }
  });

  test('is sealed by PROXY_SEAL_KEY; with another key its URLs wait', async () => {
    await using proxies = await startProxies({}, {});
    const [first, second] = proxies;
    await using site = await startSite();
    const key = (value: string) => ({ PROXY_SEAL_KEY: `${value}-of-the-operator-4711` });
    const start = (dataDir?: string, env = {}) => startApp({ ...(dataDir && { dataDir }), env });
    // Made without a key, and changed with one.
    await using bare = await start();
    await bare.rest('POST', POOLS, { name: 'mine', proxies: [first?.url] });
    await bare.stop();
    await using keyed = await start(bare.dataDir, key('first'));
    const crawler = await createCrawler(keyed, 'crawler', { proxy: 'mine' });
    await crawler.stored(await crawler.push(`${site.url}/page/1`));
    expect(site.seen.at(-1)?.from).toBe('127.0.0.11');
    await keyed.rest('PUT', `${POOLS}/mine`, { proxies: [second?.url] });
    await crawler.post('pause');
    const rid = await crawler.push(`${site.url}/page/2`);
    await keyed.stop();
    for (const env of [{}, key('second')]) {
      await using locked = await start(bare.dataDir, env);
      const { status, json } = await locked.rest('GET', POOLS);
      expect([status, json.code]).toEqual([409, 'pools_sealed']);
      await locked.rest('POST', `/crawler/${NORMAL}/crawler/unpause`);
      await eventually(() => expect(locked.log.join('\n')).toContain('PROXY_SEAL_KEY'));
      const found = await locked.rest('GET', `/crawler/${NORMAL}/crawler/find_by_rid/${rid}`);
      expect(found.json).toMatchObject({ status: 'QUEUED' });
      await locked.stop();
    }
    await using again = await start(bare.dataDir, key('first'));
    await eventually(async () => {
      const found = await again.rest('GET', `/storage?token=${NORMAL}&rid=${rid}&format=json`);
      expect(found.json).toMatchObject({ pc_status: 200 });
    });
    expect(site.seen.at(-1)?.from).toBe('127.0.0.12');
  });

  test('stays readable while its key is replaced, as the first key seals and all open', async () => {
    await using proxies = await startProxies({});
    const [proxy] = proxies;
    await using site = await startSite();
    const [old, next] = ['first-of-the-operator-4711', 'second-of-the-operator-4711'];
    const start = (PROXY_SEAL_KEY: string, dataDir?: string) =>
      startApp({ ...(dataDir && { dataDir }), env: { PROXY_SEAL_KEY } });
    await using before = await start(old);
    await before.rest('POST', POOLS, { name: 'mine', proxies: [proxy?.url] });
    await before.stop();
    await using both = await start(`${next},${old}`, before.dataDir);
    const reply = await crawl(both, `${site.url}/page/1`, { proxy: 'mine' });
    expect(reply.json, reply.text).toMatchObject({ pc_status: 200 });
    // The change seals all pools by the new key.
    await both.rest('PUT', `${POOLS}/mine`, { countries: 'DE' });
    await both.stop();
    await using withOld = await start(old, before.dataDir);
    expect((await withOld.rest('GET', POOLS)).json.code).toBe('pools_sealed');
    await withOld.stop();
    await using withNext = await start(next, before.dataDir);
    const { pools } = (await withNext.rest('GET', POOLS)).json;
    expect(pools).toMatchObject([{ name: 'mine', countries: ['DE'], proxy_count: 1 }]);
  });

  test("is made anew when its key is lost, and does not keep crawls from the operator's pools", async () => {
    await using proxies = await startProxies({}, {});
    const [own, operators] = proxies;
    await using site = await startSite();
    const PROXIES = JSON.stringify({ op: operators?.url });
    await using lost = await startApp({ env: { PROXY_SEAL_KEY: 'first-of-the-operator-4711' } });
    await lost.rest('POST', POOLS, { name: 'mine', proxies: [own?.url] });
    await lost.stop();
    const env = { PROXIES, PROXY_SEAL_KEY: 'second-of-the-operator-4711' };
    await using app = await startApp({ dataDir: lost.dataDir, env });
    const crawler = await createCrawler(app, 'crawler', { proxy: 'op' });
    await crawler.stored(await crawler.push(`${site.url}/page/1`));
    expect(site.seen.at(-1)?.from).toBe('127.0.0.12');
    const inline = await crawl(app, `${site.url}/page/2`, { proxy: 'op' });
    expect(inline.json, inline.text).toMatchObject({ pc_status: 200 });
    expect((await crawl(app, site.url, { proxy: 'mine' })).json.code).toBe('pools_sealed');
    expect((await app.rest('GET', `${POOLS}/mine`)).json.code).toBe('pools_sealed');
    const made = await app.rest('POST', POOLS, { name: 'mine', proxies: [own?.url] });
    expect(made.status, made.text).toBe(200);
    const again = await crawl(app, `${site.url}/page/3`, { proxy: 'mine' });
    expect(again.json, again.text).toMatchObject({ pc_status: 200 });
    expect(site.seen.at(-1)?.from).toBe('127.0.0.11');
  });
});
