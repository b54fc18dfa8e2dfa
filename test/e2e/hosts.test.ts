import { describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/listen.ts';
import { shareApp } from '../support/shared-app.ts';
import { type Site, startSite } from '../support/site.ts';
import { createFrozenClock } from '../support/test-clock.ts';

/** Sites to crawl, each of which is a host of its own. */
async function startSites(count: number) {
  const sites = await Promise.all(Array.from({ length: count }, () => startSite()));
  return Object.assign(sites, {
    async [Symbol.asyncDispose]() {
      await Promise.all(sites.map((site) => site[Symbol.asyncDispose]()));
    },
  });
}

function urls(site: Pick<Site, 'url'>, count: number, path = '/page/1'): string[] {
  return Array.from({ length: count }, (_, n) => `${site.url}${path}?n=${n}`);
}

/** The times of a site's requests, in milliseconds after the first. */
function startsOf(site: Site): number[] {
  const [first] = site.seen;
  return site.seen.map(({ at }) => at.getTime() - (first?.at.getTime() ?? 0));
}

const shared = shareApp();

describe('a host that takes long', () => {
  test('gets its part of the slots, and others theirs', async () => {
    await using slow = await startSite();
    await using sites = await startSites(4);
    const app = shared();
    const crawler = await createCrawler(app, 'mixed', { concurrency: 4 });
    await crawler.post('pause');
    await crawler.pushAll(urls(slow, 40, '/delay/1500'));
    for (const site of sites) await crawler.pushAll(urls(site, 10));
    await crawler.post('unpause');
    await eventually(() => expect(sites.map((site) => site.hits())).toEqual([10, 10, 10, 10]));
    // In the order of their pushes all forty would have come first.
    const last = Math.max(...sites.flatMap((site) => site.seen.map(({ at }) => at.getTime())));
    expect(slow.seen.filter(({ at }) => at.getTime() < last).length).toBeLessThan(20);
  });

  test('that never answers holds nobody up', async () => {
    await using dead = await startSite();
    await using sites = await startSites(3);
    const app = shared();
    const crawler = await createCrawler(app, 'hanging', { concurrency: 3 });
    await crawler.post('pause');
    await crawler.pushAll(urls(dead, 30, '/hang'));
    for (const site of sites) await crawler.pushAll(urls(site, 10));
    await crawler.post('unpause');
    await eventually(() => expect(sites.map((site) => site.hits())).toEqual([10, 10, 10]));
  });

  test('that is alone gets all slots', async () => {
    await using site = await startSite();
    const app = shared();
    const crawler = await createCrawler(app, 'alone', { concurrency: 7 });
    await crawler.pushAll(urls(site, 40, '/delay/100'));
    await eventually(() => expect(site.hits()).toBe(40));
    expect(site.maxConcurrent).toBe(7);
  });
});

test('a host that refuses connections is put aside, and its other URLs are not tried', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'refused', { concurrency: 2 });
  const refused = { url: `http://127.0.0.1:${await freePort()}` };
  const rids = await crawler.pushAll(urls(refused, 30));
  await crawler.pushAll(urls(site, 20));
  await eventually(() => expect(site.hits()).toBe(20));
  await eventually(async () => {
    const { waiting, retrying, running } = (await crawler.details()).activity;
    expect(waiting + retrying + running).toBe(rids.length);
    // Three tries put it aside; a try or two may have been under way.
    expect(retrying).toBeGreaterThanOrEqual(3);
    expect(retrying).toBeLessThanOrEqual(6);
  });
});

test('a 429 with Retry-After holds back the whole host, and no other', async () => {
  let refusals = 1;
  await using site = await startSite({
    routes: {
      '/limited': (_request, response) => {
        refusals -= 1;
        response.writeHead(refusals >= 0 ? 429 : 200, { 'retry-after': '2' }).end('page');
      },
    },
  });
  await using other = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'limited', { concurrency: 1 });
  await crawler.pushAll(urls(site, 5, '/limited'));
  await crawler.pushAll(urls(other, 5));
  await eventually(() => expect(other.hits()).toBe(5));
  await eventually(() => expect(site.hits()).toBe(6));
  const [, second = 0] = startsOf(site);
  expect(second).toBeGreaterThanOrEqual(1_900);
});

test('single pages that answer 503 without Retry-After do not slow their host down', async () => {
  let asked = 0;
  await using site = await startSite({
    routes: {
      '/some': (_request, response) => {
        asked += 1;
        response.writeHead(asked % 8 === 0 ? 503 : 200).end('page');
      },
    },
  });
  const crawler = await createCrawler(shared(), 'some', { concurrency: 1, max_retries: 0 });
  await crawler.pushAll(urls(site, 200, '/some'));
  await eventually(async () => {
    const { activity } = await crawler.details();
    expect(activity).toMatchObject({ completed: 175, failed: 25 });
  });
});

describe('the pace of a polite crawler', () => {
  test('holds for each host, and no host waits for another', async () => {
    await using long = await startSite();
    await using sites = await startSites(5);
    const app = shared();
    const politeness = { delay_ms: 400, max_per_host: 1, robots_txt: false };
    const crawler = await createCrawler(app, 'polite', { concurrency: 3, politeness });
    await crawler.pushAll(urls(long, 200));
    for (const site of sites) await crawler.pushAll(urls(site, 3));
    await eventually(() => expect(sites.map((site) => site.hits())).toEqual([3, 3, 3, 3, 3]));
    for (const site of [long, ...sites]) {
      const starts = startsOf(site);
      // Less one interval, because the way of the first request may take longer than that of others.
      expect(starts.at(-1)).toBeGreaterThanOrEqual((starts.length - 2) * 400);
    }
    expect(long.hits()).toBeLessThan(60);
    // What waits for its host was neither tried nor written.
    expect((await crawler.details()).activity).toMatchObject({ retrying: 0 });
  });

  test('bounds the requests at a host at once', async () => {
    await using site = await startSite();
    await using other = await startSite();
    const app = shared();
    const crawler = await createCrawler(app, 'bounded', {
      concurrency: 10,
      politeness: { delay_ms: 0, max_per_host: 2, robots_txt: false },
    });
    await crawler.pushAll(urls(site, 20, '/delay/100'));
    await crawler.pushAll(urls(other, 20, '/delay/100'));
    await eventually(() => expect([site.hits(), other.hits()]).toEqual([20, 20]));
    expect([site.maxConcurrent, other.maxConcurrent]).toEqual([2, 2]);
  });

  test('is that of robots.txt where it asks for more', async () => {
    await using site = await startSite({ robotsTxt: 'User-agent: *\nCrawl-delay: 1\n' });
    const app = shared();
    const crawler = await createCrawler(app, 'robots', {
      concurrency: 5,
      politeness: { delay_ms: 0, max_per_host: 0, robots_txt: true },
    });
    await crawler.pushAll(urls(site, 3));
    await eventually(() => expect(site.hits('/page/1')).toBe(3));
    const starts = site.seen.filter(({ path }) => path.startsWith('/page')).map(({ at }) => +at);
    expect((starts.at(-1) ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(1_000);
  });
});

test('a delay that is taken back holds up no URL that waits for it', async () => {
  await using site = await startSite();
  const app = shared();
  const politeness = { delay_ms: 3_600_000, max_per_host: 1, robots_txt: false };
  const crawler = await createCrawler(app, 'hasty', { concurrency: 2, politeness });
  await crawler.pushAll(urls(site, 3));
  await eventually(async () => {
    expect((await crawler.details()).activity).toMatchObject({ completed: 1, running: 0 });
  });
  expect(site.hits()).toBe(1);
  await app.rest('PUT', crawler.path, { politeness: { ...politeness, delay_ms: 0 } });
  await eventually(() => expect(site.hits()).toBe(3));
});

test('hosts of one domain share its pace when their crawler groups them', async () => {
  // An address is a domain of its own, whatever the port.
  await using sites = await startSites(2);
  const app = shared();
  const crawler = await createCrawler(app, 'grouped', {
    concurrency: 5,
    group_by_domain: true,
    politeness: { delay_ms: 400, max_per_host: 0, robots_txt: false },
  });
  expect((await crawler.details()).group_by_domain).toBe(true);
  for (const site of sites) await crawler.pushAll(urls(site, 3));
  await eventually(() => expect(sites.map((site) => site.hits())).toEqual([3, 3]));
  const starts = sites.flatMap((site) => site.seen.map(({ at }) => at.getTime()));
  expect(Math.max(...starts) - Math.min(...starts)).toBeGreaterThanOrEqual(4 * 400);
  // The last page is counted once its crawl has ended.
  await eventually(async () => {
    const { json } = await app.rest('GET', `${crawler.path}/hosts`);
    expect(json.hosts).toMatchObject([{ host: '127.0.0.1', tries: 6 }]);
  });
});

test('crawlers of a pace group ask a host together no more than one of them may', async () => {
  await using site = await startSite();
  const app = shared();
  const politeness = { delay_ms: 300, max_per_host: 1, robots_txt: false, group: 'partner' };
  const make = (name: string) => createCrawler(app, name, { concurrency: 5, politeness });
  const [a, b] = [await make('first'), await make('second')];
  expect((await a.details()).politeness.group).toBe('partner');
  for (const crawler of [a, b]) {
    await crawler.pushAll(urls(site, 4, '/delay/100'));
  }
  await eventually(() => expect(site.hits()).toBe(8));
  expect(site.maxConcurrent).toBe(1);
  expect(startsOf(site).at(-1)).toBeGreaterThanOrEqual(6 * 300);
  // One that leaves the group waits for the others no more.
  await app.rest('PUT', b.path, { politeness: { ...politeness, delay_ms: 0, group: '' } });
  await a.post('pause');
  await b.pushAll(urls(site, 4));
  await eventually(() => expect(site.hits()).toBe(12));
  const bad = await app.rest('PUT', b.path, { politeness: { ...politeness, group: 'a b' } });
  expect(bad.status).toBe(422);
  expect(bad.text).toContain('politeness.group');
});

test('a crawler that joins or leaves a pace group crawls what it has queued', async () => {
  await using site = await startSite();
  const app = shared();
  const politeness = { delay_ms: 50, max_per_host: 1, robots_txt: false };
  const crawler = await createCrawler(app, 'mover', { concurrency: 2, politeness });
  await crawler.pushAll(urls(site, 60));
  for (const [group, least] of [
    ['movers', 5],
    ['', 15],
  ] as const) {
    await eventually(() => expect(site.hits()).toBeGreaterThan(least));
    const { status } = await app.rest('PUT', crawler.path, {
      politeness: { ...politeness, group },
    });
    expect(status).toBe(200);
  }
  await eventually(() => expect(site.hits()).toBe(60));
});

/** The row of a site in the list of hosts. */
async function hostRow(app: TestApp, { path }: { path: string }, site: Pick<Site, 'url'>) {
  const { host } = new URL(site.url);
  const { status, text, json } = await app.rest('GET', `${path}/hosts?host_contains=${host}`);
  expect(status, text).toBe(200);
  return json.hosts[0];
}

describe('the hosts of a crawler', () => {
  test('are listed with what became of their URLs, and what they wait for', async () => {
    await using site = await startSite();
    const app = shared();
    const crawler = await createCrawler(app, 'listed', { concurrency: 2, max_retries: 0 });
    const away = { url: `http://127.0.0.1:${await freePort()}` };
    await crawler.pushAll(urls(away, 12));
    await crawler.pushAll(urls(site, 5));
    await crawler.pushAll(urls(site, 2, '/status/404'));
    await eventually(async () => {
      expect(await hostRow(app, crawler, site)).toMatchObject({ queued: 0, tries: 7 });
      expect(await hostRow(app, crawler, away)).toMatchObject({
        failures: [{ reason: 'connection_failed' }],
        wait: { kind: 'away', reason: 'connection_failed' },
      });
    });
    const { wait, queued } = await hostRow(app, crawler, away);
    expect(new Date(wait.until).getTime()).toBeGreaterThan(Date.parse('2026-01-01'));
    expect(Number(queued)).toBeGreaterThan(0);
    const { json } = await app.rest('GET', `${crawler.path}/jobs`);
    expect(json.jobs[0].host_wait).toMatchObject({ kind: 'away' });
    const failed = await app.rest('GET', `${crawler.path}/hosts?order_by=failed&max_count=1`);
    expect(failed.json.hosts).toMatchObject([{ host: new URL(away.url).host }]);
  });

  test('are not paused by a name that no host can have', async () => {
    const crawler = await createCrawler(shared(), 'long-names');
    const named = (length: number) => `${'a'.repeat(length - 8)}.example`;
    expect((await crawler.post(`hosts/pause?host=${named(253)}`)).status).toBe(200);
    // Each is kept in the crawler, which is read for every call.
    const refused = await crawler.post(`hosts/pause?host=${named(254)}`);
    expect([refused.status, refused.json.field]).toEqual([422, 'host']);
  });

  test('are paused, continued and purged one at a time', async () => {
    await using paused = await startSite();
    await using other = await startSite();
    const app = shared();
    const crawler = await createCrawler(app, 'steered');
    const { host } = new URL(paused.url);
    expect((await crawler.post(`hosts/pause?host=${host}`)).json).toEqual({ host, paused: true });
    await crawler.pushAll(urls(paused, 8));
    await crawler.pushAll(urls(other, 8));
    await eventually(() => expect(other.hits()).toBe(8));
    expect(await hostRow(app, crawler, paused)).toMatchObject({
      queued: 8,
      wait: { kind: 'paused', reason: 'user' },
    });
    expect(paused.hits()).toBe(0);
    expect((await crawler.post(`hosts/purge?host=${host}`)).json).toEqual({
      purged: 8,
      has_more: false,
    });
    expect((await crawler.details()).activity).toMatchObject({ purged: 8, waiting: 0 });
    await crawler.pushAll(urls(paused, 3));
    expect((await crawler.post(`hosts/unpause?host=${host}`)).json).toEqual({
      host,
      paused: false,
    });
    await eventually(() => expect(paused.hits()).toBe(3));
  });

  test('have exceptions from the politeness of their crawler', async () => {
    await using slow = await startSite();
    await using paused = await startSite();
    await using other = await startSite();
    const app = shared();
    const hostOf = (site: Site): string => new URL(site.url).host;
    const politeness = {
      delay_ms: 0,
      max_per_host: 0,
      robots_txt: false,
      hosts: [
        { pattern: hostOf(slow), max_per_host: 1, delay_ms: 300 },
        { pattern: hostOf(paused), paused: true },
      ],
    };
    const crawler = await createCrawler(app, 'exceptions', { politeness });
    expect((await crawler.details()).politeness.hosts).toEqual([
      { ...politeness.hosts[0], paused: false },
      politeness.hosts[1],
    ]);
    for (const site of [slow, paused, other]) {
      await crawler.pushAll(urls(site, 4));
    }
    await eventually(() => expect([slow.hits(), other.hits()]).toEqual([4, 4]));
    expect(paused.hits()).toBe(0);
    expect(startsOf(slow).at(-1)).toBeGreaterThanOrEqual(600);
    const refused = await crawler.post(`hosts/unpause?host=${hostOf(paused)}`);
    expect(refused).toMatchObject({ status: 409 });
    const bad = { politeness: { hosts: [{ pattern: 'a/b' }] } };
    const reply = await app.rest('PUT', crawler.path, bad);
    expect(reply.status).toBe(422);
    expect(reply.text).toContain('politeness.hosts[0].pattern');
    await app.rest('PUT', crawler.path, { politeness: { delay_ms: 0 } });
    await eventually(() => expect(paused.hits()).toBe(4));
  });

  test('that are not reached stay put aside after a restart', async () => {
    const away = { url: `http://127.0.0.1:${await freePort()}` };
    // The restart may take longer than the host is put aside for.
    const clock = createFrozenClock();
    await using first = await startApp({ clock });
    const crawler = await createCrawler(first, 'again', { concurrency: 2 });
    await crawler.pushAll(urls(away, 9));
    await eventually(async () => {
      expect(await hostRow(first, crawler, away)).toMatchObject({ wait: { kind: 'away' } });
    });
    await first.stop();
    await using second = await startApp({ dataDir: first.dataDir, clock });
    expect(await hostRow(second, crawler, away)).toMatchObject({ wait: { kind: 'away' } });
  });
});
