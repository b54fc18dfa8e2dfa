import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';

const PAGES = 600;

test('a backlog of quick pages is crawled within its limit, and not while the crawler is paused', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'quick', { concurrency: 4 });
  const items = Array.from({ length: PAGES }, (_, n) => ({ url: `${site.url}/page/${n}?delay=2` }));
  expect((await crawler.post('push_batch', { items })).status).toBe(200);
  for (const pauseAt of [50, 200, 400]) {
    await eventually(() => expect(site.hits()).toBeGreaterThan(pauseAt));
    await crawler.post('pause', {});
    await eventually(async () =>
      expect((await crawler.details()).activity).toMatchObject({ running: 0 }),
    );
    const hits = site.hits();
    await wait(100);
    expect(site.hits()).toBe(hits);
    const { waiting, completed } = (await crawler.details()).activity;
    expect(waiting + completed).toBe(PAGES);
    await crawler.post('unpause', {});
  }
  await eventually(async () =>
    expect((await crawler.details()).activity).toMatchObject({ completed: PAGES, waiting: 0 }),
  );
  expect(site.maxConcurrent).toBeLessThanOrEqual(4);
  // What was in flight at a pause may be crawled again.
  expect(site.hits()).toBeLessThanOrEqual(PAGES + 3 * 4);
});
