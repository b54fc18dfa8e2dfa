import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';

/** Over HTTP/1 a browser has six connections to the service. */
test('eight tabs share two streams; each stays current, and calls are answered', async () => {
  await using app = await startApp();
  for (const name of ['one', 'two', 'three', 'four']) await createCrawler(app, name);
  await using browser = await openConsoleBrowser(app.url);
  const first = await browser.open('/crawlers', NORMAL);
  const open = new Set<object>();
  let most = 0;
  const watch = (page: Page): void => {
    const own = new Set<object>();
    page.on('request', (request) => {
      if (!request.url().includes('.WatchService/')) return;
      own.add(request);
      open.add(request);
      most = Math.max(most, open.size);
    });
    page.on('close', () => own.forEach((request) => open.delete(request)));
    for (const end of ['requestfinished', 'requestfailed'] as const) {
      page.on(end as 'requestfinished', (request) => open.delete(request));
    }
  };
  watch(first);
  await first.reload();
  const tabs = [first];
  for (const path of ['', '', '', '/one', '/two', '/three', '/four']) {
    const tab = await first.context().newPage();
    watch(tab);
    await tab.goto(`${app.url}/console/crawlers${path}`);
    await tab.getByRole('heading', { level: 1 }).waitFor();
    tabs.push(tab);
  }
  const lists = tabs.slice(0, 4);
  const crawlers = tabs.slice(4);
  for (const tab of lists) await tab.getByText('Live', { exact: true }).waitFor();
  expect(most).toBeLessThanOrEqual(2);
  expect(most).toBeGreaterThan(0);

  // What changes elsewhere is seen in all of them.
  for (const name of ['one', 'two', 'three', 'four']) {
    await app.rest('POST', `/crawler/${NORMAL}/${name}/pause`);
  }
  for (const tab of lists) {
    await eventually(async () =>
      expect(await tab.getByText('Paused', { exact: true }).count()).toBeGreaterThanOrEqual(4),
    );
  }
  for (const tab of crawlers) await tab.getByRole('button', { name: 'Unpause' }).waitFor();
  await crawlers[3]?.getByRole('button', { name: 'Unpause' }).click();
  await eventually(async () => {
    expect((await app.rest('GET', `/crawler/${NORMAL}/four`)).json.status).toBe('running');
  });

  // When the tab that reads is closed, another one reads.
  await first.close();
  await app.rest('POST', `/crawler/${NORMAL}/three/unpause`);
  for (const tab of lists.slice(1)) {
    await eventually(async () => {
      const row = tab.getByRole('row').filter({ hasText: 'three' });
      expect(await row.getByText('Paused', { exact: true }).count()).toBe(0);
    });
    await tab.getByText('Live', { exact: true }).waitFor();
  }
  expect(most).toBeLessThanOrEqual(2);
  expect(browser.problems).toEqual([]);
});
