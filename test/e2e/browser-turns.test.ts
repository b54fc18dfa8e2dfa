import { expect, test } from 'vitest';
import { JAVASCRIPT, QUICK, startApp } from '../support/app.ts';
import { crawlInBrowser, htmlRoute, otherAccount } from '../support/browser-crawls.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';

// Browser pages are few, and shared by all accounts.

const routes = { '/script': htmlRoute('<p>page</p>') };

async function push(
  app: Awaited<ReturnType<typeof startApp>>,
  url: string,
  count: number,
  parameters: Record<string, unknown>,
): Promise<void> {
  await app.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js', concurrency: 20 });
  const items = Array.from({ length: count }, (_, n) => ({ url: `${url}?${n}`, ...parameters }));
  const { status, text } = await app.rest('POST', `/crawler/${JAVASCRIPT}/js/push_batch`, {
    items,
  });
  if (status >= 300) throw new Error(text);
}

test('an account that fills all pages keeps no other waiting', async () => {
  await using site = await startSite({ routes });
  await using app = await startApp({
    env: { NETWORK_ALLOW: site.host, BROWSER_PAGES: '2', SHUTDOWN_SECONDS: '1' },
    timing: {
      dispatch: { ...QUICK.dispatch, drainMs: 10 },
    },
  });
  const other = await otherAccount(app);
  await push(app, `${site.url}/script`, 12, { parameters: { page_wait: 60_000 } });
  // Both pages are in use for a minute, and ten URLs wait in the queue for them.
  await eventually(() => expect(site.hits('/script')).toBe(2));
  await eventually(async () => {
    const { text } = await app.rest('GET', '/metrics');
    expect(text).toContain('queued_crawler_pool_used{pool="browser"} 2');
    expect(text).toContain('queued_crawler_pool_waiting{pool="browser"} 0');
    const { json } = await app.rest('GET', `/crawler/${JAVASCRIPT}/js`);
    expect(json.activity).toMatchObject({ running: 2, waiting: 10 });
  });
  for (let n = 0; n < 3; n += 1) {
    const { cb_status: status } = await crawlInBrowser(app, `${site.url}/page/${n}`, {
      token: other,
    });
    expect(status).toBe(200);
  }
  expect(site.hits('/script')).toBe(2);
});

test('crawls of one account beyond its pages wait in the queue, longer than a crawl may take, and all end well', async () => {
  await using site = await startSite({ routes });
  await using app = await startApp({
    env: { NETWORK_ALLOW: site.host, BROWSER_PAGES: '1', CRAWL_TIMEOUT_SECONDS: '30' },
  });
  await push(app, `${site.url}/script`, 5, { parameters: { page_wait: 8_000 } });
  await eventually(() => expect(site.hits('/script')).toBeGreaterThan(0));
  await eventually(async () => {
    const { json } = await app.rest('GET', `/storage/total_count?token=${JAVASCRIPT}`);
    expect(json.totalCount).toBe(5);
  });
  // None was tried twice: having had to wait is no failure.
  expect(site.hits('/script')).toBe(5);
});
