import { expect, test } from 'vitest';
import { NORMAL } from '../../support/app.ts';
import { runCommandLine } from '../../support/command-line.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { shareApp } from '../../support/shared-app.ts';
import { startSite } from '../../support/site.ts';

const shared = shareApp();

test('the hosts of a crawler are listed in a table, with what they wait for', async () => {
  await using site = await startSite();
  const app = shared();
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const run = (...args: string[]) => runCommandLine(args, { env });
  const { host } = new URL(site.url);
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  for (const path of ['/page/1', '/status/500'])
    await shop.stored(await shop.push(`${site.url}${path}`));
  expect((await run('hosts', 'pause', 'shop', host)).stdout).toBe(`${host} is paused\n`);
  for (const n of [2, 3, 4]) await shop.push(`${site.url}/page/${n}`);

  const table = await run('hosts', 'list', 'shop');
  expect([table.code, table.stderr]).toEqual([0, '']);
  const [heading, row, total] = table.stdout.split('\n');
  expect(heading).toMatch(/^HOST +QUEUED +RUNNING +TRIES +FAILED +PER SECOND +MEAN MS +WAITS FOR$/);
  expect(row).toMatch(new RegExp(`^${host} +3 +0 +2 +1 \\(\\S+\\) +\\d+\\.\\d +\\d+ +paused`));
  expect(total).toBe('1 hosts have URLs in the queue');
  expect((await run('--json', 'hosts', 'list', 'shop')).json).toMatchObject([
    { host, queued: 3, tries: 2, failed: 1 },
  ]);
});
