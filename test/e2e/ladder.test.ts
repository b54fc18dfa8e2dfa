import { describe, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, PATIENT, QUICK, startApp, type TestApp } from '../support/app.ts';
import { type CrawlerClient, createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startProxies } from '../support/proxy.ts';
import { startReceiver } from '../support/receiver.ts';
import { type Site, type SiteRoute, startSite } from '../support/site.ts';
import { createFrozenClock, createTestClock } from '../support/test-clock.ts';

const MINUTE = 60_000;
const DIRECT = '127.0.0.1';
const A = '127.0.0.11';
const B = '127.0.0.12';
const LADDER = 'direct,pool:a,pool:b';

/** A page for clients that `isWelcome` is true for, and `block` for others. */
function guarded(
  isWelcome: (from: string) => boolean,
  block: SiteRoute = (_request, response) => void response.writeHead(403).end('no'),
): SiteRoute {
  return (request, response, url) => {
    if (!isWelcome(request.socket.remoteAddress ?? '')) return block(request, response, url);
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>page</p>');
  };
}

const challenge: SiteRoute = (_request, response) =>
  void response
    .writeHead(403, { 'cf-mitigated': 'challenge', 'content-type': 'text/html' })
    .end('<title>Just a moment...</title>');

/** A service with the pools a and b, of one proxy each. */
async function startWithPools(options: Parameters<typeof startApp>[0] = {}) {
  await using stack = new AsyncDisposableStack();
  const proxies = stack.use(await startProxies({}, {}));
  const [a, b] = proxies;
  const PROXIES = JSON.stringify({ a: a?.url, b: b?.url });
  const env = { PROXIES, ...options.env };
  const app = stack.use(await startApp({ timing: PATIENT, ...options, env }));
  const owned = stack.move();
  return Object.assign(app, { [Symbol.asyncDispose]: () => owned.disposeAsync() });
}

const addresses = (site: Site): readonly string[] => site.seen.map(({ from }) => from);

/** The result of a URL that is pushed now. */
async function crawl(crawler: CrawlerClient, url: string, more = '') {
  return (await crawler.stored(await crawler.push(url, more))).json;
}

describe('a URL that its host blocks', () => {
  test('climbs to the rung that works, where the next one begins; lower ones are tried now and then', async () => {
    const clock = createTestClock();
    let welcome: readonly string[] = [B];
    await using site = await startSite({
      routes: { '/page': guarded((from) => welcome.includes(from)) },
    });
    await using app = await startWithPools({ clock });
    const crawler = await createCrawler(app, 'climber', { escalate: 'direct, pool:a,pool:b' });
    expect(await crawler.details()).toMatchObject({ escalate: LADDER });
    const routeOf = async (n: number): Promise<readonly string[]> => {
      site.reset();
      expect(await crawl(crawler, `${site.url}/page?n=${n}`)).toMatchObject({
        original_status: 200,
      });
      return addresses(site);
    };

    const first = await crawl(crawler, `${site.url}/page`);
    expect(first).toMatchObject({
      cb_status: 200,
      original_status: 200,
      rung: 'pool:b',
      climbed: 'direct forbidden, pool:a forbidden',
    });
    expect(addresses(site)).toEqual([DIRECT, A, B]);
    expect(await routeOf(1)).toEqual([B]);

    clock.advance(11 * MINUTE);
    expect(await routeOf(2)).toEqual([A, B]);
    expect(await routeOf(3)).toEqual([B]);

    clock.advance(50 * MINUTE);
    expect(await routeOf(4)).toEqual([DIRECT, A, B]);
    expect(await routeOf(5)).toEqual([B]);

    welcome = [DIRECT, A, B];
    clock.advance(11 * MINUTE);
    expect(await routeOf(6)).toEqual([A]);
    expect(await routeOf(7)).toEqual([A]);
    clock.advance(11 * MINUTE);
    expect(await routeOf(8)).toEqual([DIRECT]);
    expect(await routeOf(9)).toEqual([DIRECT]);
    // Nothing was lost, and nothing failed.
    expect((await crawler.details()).activity).toMatchObject({
      pushed: 10,
      completed: 10,
      failed: 0,
    });
  });

  test('shows its rungs while it waits, when it is delivered, in the history and in metrics', async () => {
    const climbed = 'direct forbidden, pool:a forbidden';
    const clock = createTestClock();
    await using site = await startSite({ routes: { '/page': guarded((from) => from === B) } });
    await using receiver = await startReceiver();
    await using app = await startWithPools({ clock, timing: QUICK });
    const delayMs = 600_000;
    const crawler = await createCrawler(app, 'shown', {
      escalate: LADDER,
      callback_url: receiver.url,
      politeness: { delay_ms: delayMs },
    });
    const rid = await crawler.push(`${site.url}/page`, '&format=json');
    // The delay between two requests to the host holds for the rungs, too.
    for (const shown of ['direct forbidden', climbed]) {
      await eventually(async () => {
        const { json } = await app.rest('GET', `${crawler.path}/jobs`);
        expect(json.jobs).toMatchObject([
          { state: 'retrying', last_failure: 'forbidden', climbed: shown },
        ]);
      });
      clock.advance(delayMs);
    }
    await eventually(() => expect(receiver.deliveries).toHaveLength(1));
    expect(addresses(site)).toEqual([DIRECT, A, B]);
    expect((await app.rest('GET', `/find_by_rid/${NORMAL}/${rid}`)).json.tries).toMatchObject([
      { rung: 'direct', original_status: 403, failure: 'forbidden' },
      { rung: 'pool:a', original_status: 403, failure: 'forbidden' },
      { rung: 'pool:b', original_status: 200 },
    ]);
    const [post] = receiver.deliveries;
    expect(post?.json).toMatchObject({ rung: 'pool:b', climbed });
    expect(post?.headers).toMatchObject({ 'webhook-rung': 'pool:b', 'webhook-climbed': climbed });
    const stats = (await app.rest('GET', `/crawler/${NORMAL}/stats`)).json;
    const shown = stats.crawlers.find(({ name }: { name: string }) => name === 'shown');
    expect(shown.history).toMatchObject([{ retries: 2, climbs: 2, success: 1 }]);
    const metrics = (await app.rest('GET', '/metrics')).text;
    for (const [rung, pages, blocks] of [
      ['direct', 0, 1],
      ['pool:a', 0, 1],
      ['pool:b', 1, 0],
    ]) {
      expect(metrics).toContain(
        `queued_crawler_rung_tries_total{rung="${rung}",end="page"} ${pages}`,
      );
      expect(metrics).toContain(
        `queued_crawler_rung_tries_total{rung="${rung}",end="block"} ${blocks}`,
      );
    }
  });

  test('gets the page in the browser where a plain request is refused', async () => {
    await using site = await startSite({
      routes: {
        '/page': (request, response) => {
          const isBrowser = request.headers['sec-ch-ua'] !== undefined;
          response.writeHead(isBrowser ? 200 : 403, { 'content-type': 'text/html' });
          response.end('<p id="x">plain</p><script>x.textContent = "drawn"</script>');
        },
      },
    });
    await using app = await startWithPools();
    const crawler = await createCrawler(app, 'browsed', { escalate: 'direct,browser:pool:b' });
    expect(await crawl(crawler, `${site.url}/page`)).toMatchObject({
      original_status: 200,
      rung: 'browser:pool:b',
      climbed: 'direct forbidden',
      body: expect.stringContaining('drawn'),
    });
    expect(addresses(site).slice(0, 2)).toEqual([DIRECT, B]);
    // A browser only loads pages.
    site.reset();
    const posted = await app.rest(
      'POST',
      `/?token=${NORMAL}&crawler=browsed&callback=true&url=${encodeURIComponent(`${site.url}/page`)}`,
      { a: 1 },
    );
    expect((await crawler.stored(posted.json.rid)).json).toMatchObject({
      original_status: 403,
      rung: 'direct',
    });
    expect(site.seen.map(({ method }) => method)).toEqual(['POST']);
  });

  test.each([
    ['a challenge', challenge, 'anti_bot_challenge'],
    [
      '429',
      (_request, response) => void response.writeHead(429, { 'retry-after': '3600' }).end('no'),
      'too_many_requests',
    ],
  ] as const satisfies readonly (readonly [string, SiteRoute, string])[])(
    'climbs for %s at once, whatever max_retries is',
    async (_title, block, reason) => {
      await using site = await startSite({
        routes: { '/page': guarded((from) => from === A, block) },
      });
      await using app = await startWithPools();
      const crawler = await createCrawler(app, 'climber', { escalate: LADDER, max_retries: 0 });
      expect(await crawl(crawler, `${site.url}/page`)).toMatchObject({
        original_status: 200,
        rung: 'pool:a',
        climbed: `direct ${reason}`,
      });
    },
  );

  test('climbs for an empty body only if the host has sent a body before', async () => {
    const clock = createTestClock();
    await using site = await startSite({
      routes: {
        '/empties': guarded(
          (from) => from === A,
          (_request, response) => void response.writeHead(200).end(),
        ),
      },
    });
    await using app = await startWithPools({ clock });
    const crawler = await createCrawler(app, 'empties', { escalate: LADDER });
    const early = await crawler.push(`${site.url}/empties`);
    await eventually(async () =>
      expect((await crawler.find(early)).json.request_info.retry).toBe(1),
    );
    expect(addresses(site)).toEqual([DIRECT]);
    await crawl(crawler, `${site.url}/page/1`);
    clock.advance(MINUTE);
    expect((await crawler.stored(early)).json).toMatchObject({
      rung: 'pool:a',
      climbed: 'direct empty_body',
    });
  });

  test('climbs past a pool whose proxies the host has all blocked', async () => {
    // While the clock stands still, a run ends when its lock lapses.
    const clock = createFrozenClock();
    const tasks = { ...QUICK.tasks, lockMs: 4_000, runLockMs: 4_000 };
    await using site = await startSite({
      routes: { '/page': guarded((from) => from === B, challenge) },
    });
    await using app = await startWithPools({ clock, timing: { tasks } });
    const crawler = await createCrawler(app, 'climber', { escalate: 'pool:a,pool:b' });
    const other = await createCrawler(app, 'other', { escalate: 'pool:a,pool:b' });
    await crawl(crawler, `${site.url}/page`);
    // Its proxy has a cool-down at the host, for the account.
    expect(await crawl(other, `${site.url}/page`)).toMatchObject({
      rung: 'pool:b',
      climbed: 'pool:a proxy_unavailable',
    });
    expect(addresses(site)).toEqual([A, B, B]);
  });
});

describe('a site that does not block', () => {
  test('answers 404 once, and 403 to each rung once; the URL ends as without a ladder', async () => {
    const clock = createTestClock();
    await using site = await startSite();
    await using app = await startWithPools({ clock });
    const crawler = await createCrawler(app, 'plain', { escalate: LADDER, concurrency: 1 });
    expect(await crawl(crawler, `${site.url}/status/404`)).toMatchObject({
      cb_status: 200,
      original_status: 404,
      rung: 'direct',
    });
    expect(addresses(site)).toEqual([DIRECT]);
    const forbidden = async (n: number) => {
      site.reset();
      expect(await crawl(crawler, `${site.url}/status/403?n=${n}`)).toMatchObject({
        cb_status: 200,
        original_status: 403,
      });
      return addresses(site);
    };
    for (let n = 0; n < 5; n += 1) expect(await forbidden(n)).toEqual([DIRECT, A, B]);
    // It is known by now that no rung helps; one URL a minute finds out whether that has changed.
    expect(await forbidden(5)).toEqual([DIRECT, A, B]);
    for (let n = 6; n < 9; n += 1) expect(await forbidden(n)).toEqual([DIRECT]);
    clock.advance(2 * MINUTE);
    expect(await forbidden(9)).toEqual([DIRECT, A, B]);
    expect(await forbidden(10)).toEqual([DIRECT]);
  });

  test('is not climbed for a status that the push takes, nor for a push with a proxy of its own', async () => {
    await using site = await startSite();
    await using app = await startWithPools();
    const crawler = await createCrawler(app, 'plain', { escalate: LADDER });
    const url = `${site.url}/status/403`;
    expect(await crawl(crawler, url, '&custom_success_codes=403')).toMatchObject({
      rung: 'direct',
    });
    const own = await crawl(crawler, url, '&proxy=b');
    expect(own).toMatchObject({ original_status: 403 });
    expect(own).not.toHaveProperty('rung');
    expect(addresses(site)).toEqual([DIRECT, B]);
  });
});

test('a ladder is refused that nobody can climb, and the reply names the field', async () => {
  await using app = await startWithPools();
  const tryCreate = async (app: TestApp, escalate: string, more = {}, token = NORMAL) => {
    const reply = await app.rest('POST', `/crawler/${token}`, { name: 'x', escalate, ...more });
    expect([reply.status, reply.json.field]).toEqual([422, 'escalate']);
    return reply.json.error as string;
  };
  expect(await tryCreate(app, 'direct,pool:c')).toBe(
    'escalate: this service has no pool c; it has a, b, direct.',
  );
  expect(await tryCreate(app, 'direct,pool:a,direct')).toBe('escalate has the rung direct twice.');
  expect(await tryCreate(app, 'direct')).toBe('escalate takes 2 to 8 rungs.');
  expect(await tryCreate(app, 'direct,b')).toContain('"b" is no rung');
  const many = Array.from({ length: 9 }, (_, n) => `pool:p${n}`).join();
  expect(await tryCreate(app, many)).toBe('escalate takes 2 to 8 rungs.');
  expect(await tryCreate(app, LADDER, { proxy: 'a' })).toContain('takes the place of proxy');
  expect(await tryCreate(app, 'direct,browser:pool:b', {}, JAVASCRIPT)).toContain(
    'write pool:b for browser:pool:b',
  );
  const crawler = await createCrawler(app, 'fine', { escalate: LADDER });
  const both = await app.rest('PUT', crawler.path, { proxy: 'a' });
  expect([both.status, both.json.field]).toEqual([422, 'escalate']);
  await app.rest('PUT', crawler.path, { escalate: '' });
  expect(await crawler.details()).not.toHaveProperty('escalate');
});
