import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startProxies } from '../support/proxy.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const SIZE = 600_000;

/** A clock on which a day has just begun. */
function createMorningClock() {
  const clock = createTestClock();
  clock.advance(DAY - (clock.now().getTime() % DAY) + MINUTE);
  return clock;
}

async function historyOf(app: TestApp, name: string) {
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/stats`);
  return json.crawlers.find((each: { name: string }) => each.name === name).history;
}

test('URLs wait when their crawler has used its megabytes of proxies, also in another process, until the next day', async () => {
  const clock = createMorningClock();
  await using proxies = await startProxies({});
  await using site = await startSite();
  const env = { PROXIES: JSON.stringify({ fast: proxies[0]?.url }) };
  await using first = await startApp({ clock, env });
  const settings = { proxy: 'fast', max_proxy_megabytes_a_day: 1, concurrency: 1 };
  const crawler = await createCrawler(first, 'limited', settings);
  const url = (n: number): string => `${site.url}/page/1?size=${SIZE}&n=${n}`;
  for (const n of [1, 2]) await crawler.stored(await crawler.push(url(n)));
  const waits = async (app: TestApp, queued: number): Promise<void> => {
    await eventually(async () => {
      const { json } = await app.rest('GET', `${crawler.path}/jobs`);
      expect(json.jobs).toHaveLength(queued);
      expect(json.jobs[0]).toMatchObject({ tries: 0, host_wait: { reason: 'proxy_budget_used' } });
    });
  };
  const third = await crawler.push(url(3));
  await waits(first, 1);
  await eventually(async () => {
    expect(await crawler.details()).toMatchObject({
      activity: { completed: 2, failed: 0, retrying: 0 },
      attention: [
        { reason: 'proxy_budget_used', detail: expect.stringContaining('1 URLs are queued') },
      ],
    });
  });
  expect(first.log.join('\n')).toContain('the crawler has used the megabytes of its proxies');
  const [day] = await historyOf(first, 'limited');
  expect(Number(day.proxy_bytes)).toBeGreaterThan(2 * SIZE);
  expect(Number(day.proxy_bytes)).toBeLessThan(2 * SIZE + 10_000);
  // Other crawlers have budgets of their own.
  const other = await createCrawler(first, 'other', { ...settings, max_proxy_megabytes_a_day: 2 });
  await other.push(url(4));
  await eventually(() => expect(site.hits('/page/1')).toBe(3));
  await first.stop();

  await using second = await startApp({ clock, env, dataDir: first.dataDir });
  await second.rest(
    'GET',
    `/?token=${NORMAL}&crawler=limited&callback=true&url=${site.url}/page/5`,
  );
  await waits(second, 2);
  expect(site.hits('/page/1')).toBe(3);
  clock.advance(DAY);
  await eventually(async () => {
    const { json } = await second.rest('GET', `/storage?token=${NORMAL}&rid=${third}&format=json`);
    expect(json).toMatchObject({ cb_status: 200, original_status: 200 });
  });
  await eventually(() => expect(site.hits('/page/5')).toBe(1));
});

test('a greater limit applies within minutes, and URLs that need no proxy never wait', async () => {
  const clock = createMorningClock();
  await using proxies = await startProxies({});
  await using site = await startSite();
  await using other = await startSite();
  await using app = await startApp({
    clock,
    env: { PROXIES: JSON.stringify({ fast: proxies[0]?.url }) },
  });
  const crawler = await createCrawler(app, 'raised', {
    proxy: 'fast',
    max_proxy_megabytes_a_day: 1,
  });
  await crawler.stored(await crawler.push(`${site.url}/page/1?size=1100000`));
  const waiting = await crawler.push(`${site.url}/page/2`);
  await eventually(async () => {
    const { json } = await app.rest('GET', `${crawler.path}/jobs`);
    expect(json.jobs).toMatchObject([{ host_wait: { reason: 'proxy_budget_used' } }]);
  });
  await crawler.stored(await crawler.push(`${other.url}/page/1`, '&proxy=direct'));
  expect(site.hits('/page/2')).toBe(0);
  await app.rest('PUT', crawler.path, { max_proxy_megabytes_a_day: 3 });
  clock.advance(11 * MINUTE);
  expect((await crawler.stored(waiting)).json).toMatchObject({ original_status: 200 });
  expect((await crawler.details()).activity).toMatchObject({ completed: 3, failed: 0 });
});
