import { describe, expect, test } from 'vitest';
import { startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/listen.ts';
import { type Site, startSite } from '../support/site.ts';

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

describe('a host that takes long', () => {
  test('gets its part of the slots, and others theirs', async () => {
    await using slow = await startSite();
    await using sites = await startSites(4);
    await using app = await startApp();
    const crawler = await createCrawler(app, 'mixed', { concurrency: 4 });
    await Promise.all(urls(slow, 40, '/delay/1500').map((url) => crawler.push(url)));
    for (const site of sites) await Promise.all(urls(site, 10).map((url) => crawler.push(url)));
    await eventually(() => expect(sites.map((site) => site.hits())).toEqual([10, 10, 10, 10]), {
      timeoutMs: 20_000,
    });
    // In the order of their pushes all forty would have come first.
    expect(slow.hits()).toBeLessThan(36);
  });

  test('that never answers holds nobody up', async () => {
    await using dead = await startSite();
    await using sites = await startSites(3);
    await using app = await startApp();
    const crawler = await createCrawler(app, 'hanging', { concurrency: 3 });
    await crawler.post('pause');
    await Promise.all(urls(dead, 30, '/hang').map((url) => crawler.push(url)));
    for (const site of sites) await Promise.all(urls(site, 10).map((url) => crawler.push(url)));
    await crawler.post('unpause');
    await eventually(() => expect(sites.map((site) => site.hits())).toEqual([10, 10, 10]), {
      timeoutMs: 20_000,
    });
  });

  test('that is alone gets all slots', async () => {
    await using site = await startSite();
    await using app = await startApp();
    const crawler = await createCrawler(app, 'alone', { concurrency: 7 });
    await Promise.all(urls(site, 40, '/delay/100').map((url) => crawler.push(url)));
    await eventually(() => expect(site.hits()).toBe(40), { timeoutMs: 20_000 });
    expect(site.maxConcurrent).toBe(7);
  });
});

test('a host that refuses connections is put aside, and its other URLs are not tried', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'refused', { concurrency: 2 });
  const refused = { url: `http://127.0.0.1:${await freePort()}` };
  const rids = await Promise.all(urls(refused, 30).map((url) => crawler.push(url)));
  await Promise.all(urls(site, 20).map((url) => crawler.push(url)));
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
  await using app = await startApp();
  const crawler = await createCrawler(app, 'limited', { concurrency: 1 });
  await Promise.all(urls(site, 5, '/limited').map((url) => crawler.push(url)));
  await Promise.all(urls(other, 5).map((url) => crawler.push(url)));
  await eventually(() => expect(other.hits()).toBe(5));
  await eventually(() => expect(site.hits()).toBe(6), { timeoutMs: 20_000 });
  const [, second = 0] = startsOf(site);
  expect(second).toBeGreaterThanOrEqual(1_900);
});

describe('the pace of a polite crawler', () => {
  test('holds for each host, and no host waits for another', async () => {
    await using long = await startSite();
    await using sites = await startSites(5);
    await using app = await startApp();
    const politeness = { delay_ms: 400, max_per_host: 1, robots_txt: false };
    const crawler = await createCrawler(app, 'polite', { concurrency: 3, politeness });
    await Promise.all(urls(long, 200).map((url) => crawler.push(url)));
    for (const site of sites) await Promise.all(urls(site, 3).map((url) => crawler.push(url)));
    await eventually(() => expect(sites.map((site) => site.hits())).toEqual([3, 3, 3, 3, 3]), {
      timeoutMs: 30_000,
    });
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
    await using app = await startApp();
    const crawler = await createCrawler(app, 'bounded', {
      concurrency: 10,
      politeness: { delay_ms: 0, max_per_host: 2, robots_txt: false },
    });
    await Promise.all(urls(site, 20, '/delay/100').map((url) => crawler.push(url)));
    await Promise.all(urls(other, 20, '/delay/100').map((url) => crawler.push(url)));
    await eventually(() => expect([site.hits(), other.hits()]).toEqual([20, 20]), {
      timeoutMs: 20_000,
    });
    expect([site.maxConcurrent, other.maxConcurrent]).toEqual([2, 2]);
  });

  test('is that of robots.txt where it asks for more', async () => {
    await using site = await startSite({ robotsTxt: 'User-agent: *\nCrawl-delay: 1\n' });
    await using app = await startApp();
    const crawler = await createCrawler(app, 'robots', {
      concurrency: 5,
      politeness: { delay_ms: 0, max_per_host: 0, robots_txt: true },
    });
    await Promise.all(urls(site, 3).map((url) => crawler.push(url)));
    await eventually(() => expect(site.hits('/page/1')).toBe(3), { timeoutMs: 20_000 });
    const starts = site.seen.filter(({ path }) => path.startsWith('/page')).map(({ at }) => +at);
    expect((starts.at(-1) ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(1_000);
  });
});
