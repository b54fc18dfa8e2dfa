import { expect, test } from 'vitest';
import { NORMAL, QUICK, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';

test('crawls in flight are shown as running, as soon as they have started', async () => {
  await using site = await startSite();
  const dispatch = { ...QUICK.dispatch, idleReleaseMs: 10_000 };
  await using app = await startApp({ timing: { dispatch } });
  const crawler = await createCrawler(app, 'slow', { concurrency: 3 });
  const push = async (count: number, path: string): Promise<void> => {
    const items = Array.from({ length: count }, () => ({ url: `${site.url}/${path}` }));
    expect((await crawler.post('push_batch', { items })).status).toBe(200);
  };
  await push(5, 'hang');
  const shown = { running: 3, waiting: 2, pushed: 5 };
  await eventually(async () => expect((await crawler.details()).activity).toMatchObject(shown));
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/stats?crawler=slow`);
  expect(json.concurrency.running).toBe(3);
});
