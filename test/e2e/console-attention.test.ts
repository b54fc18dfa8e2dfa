import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';

test('the console and doctor show trouble with its reason, since when, and the next step', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: { status: 500 } });
  await using app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1s,1s,1s,1h' } });
  await createCrawler(app, 'calm');
  const crawler = await createCrawler(app, 'hooked', { callback_url: receiver.url });
  for (let n = 0; n < 3; n += 1) await crawler.push(`${site.url}/page/${n}`);
  await receiver.until(3);
  await using browser = await openConsoleBrowser(app.url);
  const onPage = async (path: string, use: (page: Page) => Promise<void>) => {
    const page = await browser.open(path, NORMAL);
    await use(page);
    await page.context().close();
  };

  await onPage('/crawlers', async (page) => {
    const row = page.getByRole('row').filter({ hasText: 'hooked' });
    const badge = row.getByText('Deliveries fail');
    await badge.waitFor();
    expect(await row.locator('time').first().getAttribute('title')).toBeTruthy();
    const title = await badge.getAttribute('title');
    expect(title).toMatch(/the last \d+ deliveries failed, the latest with: .*500/);
    expect(title).toContain('send a test delivery');
    const calm = page.getByRole('row').filter({ hasText: 'calm' });
    await calm.getByText('Ready').waitFor();
    await page.getByRole('button', { name: 'Need attention' }).click();
    await eventually(async () => expect(await calm.count()).toBe(0));
    await row.getByRole('link', { name: 'hooked' }).click();
    const notice = page.getByRole('alert').filter({ hasText: 'Deliveries fail' });
    await notice.getByText(/Began .*: the last \d+ deliveries failed/).waitFor();
    await notice.getByText(/send a test delivery/).waitFor();
    await notice.getByRole('link', { name: 'Failed deliveries' }).click();
    await page.getByText('3 to be tried again').waitFor();

    const env = { QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
    const { stdout: output } = await runCommandLine(['doctor'], { env });
    expect(output).toMatch(
      /crawler hooked +warning +deliveries_fail since 20.*send a test delivery/,
    );
    expect(output).not.toContain('calm');

    // The page follows by itself.
    receiver.answer({ status: 200 });
    const replayed = await crawler.post('replay', { from: '2020-01-01T00:00:00Z' });
    expect(replayed.status, replayed.text).toBe(200);
    await eventually(async () => expect(await notice.count()).toBe(0));
  });
  expect(browser.problems).toEqual([]);
});
