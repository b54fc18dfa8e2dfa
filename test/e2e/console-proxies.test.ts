import { expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp } from '../support/app.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/listen.ts';
import { startProxy } from '../support/proxy.ts';
import { startSite } from '../support/site.ts';
import { createFrozenClock } from '../support/test-clock.ts';

test('the operator sees proxies and hosts in the console, and nobody sees a password', async () => {
  await using proxy = await startProxy({});
  await using site = await startSite({
    routes: { '/forbidden': (_request, response) => void response.writeHead(403).end('no') },
  });
  const secret = 'sesame-seed-4712';
  const dead = `http://user:${secret}@127.0.0.1:${await freePort()}`;
  await using app = await startApp({
    // The cool-down of the failed proxy lasts.
    clock: createFrozenClock(),
    env: { PROXIES: JSON.stringify({ fast: proxy.url, dead }) },
  });
  const query = { token: NORMAL, format: 'json' };
  const crawl = (path: string, pool: string) =>
    app.rest('GET', `/?${new URLSearchParams({ ...query, url: site.url + path, proxy: pool })}`);
  await crawl('/page/1?size=300000', 'fast');
  await crawl('/page/1', 'dead');
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/system', ADMIN);
  const row = (table: string, text: string) =>
    page
      .getByRole('table', { name: table, exact: true })
      .getByRole('row')
      .filter({ hasText: text });
  await row('Proxies', new URL(dead).host).getByText('proxy failed').waitFor();
  await row('Proxies', new URL(proxy.url).host).getByText('usable').waitFor();
  await row('Hosts through proxies', 'fast').filter({ hasText: site.host }).waitFor();
  expect(await page.content()).not.toContain(secret);
  await page.context().close();
  browser.problems.splice(0).forEach((each) => expect(each).toContain('401'));

  // The ladder of a crawler is typed in its form, and a refusal is shown at the field.
  const crawler = await createCrawler(app, 'typed');
  const settings = await browser.open('/crawlers/typed/settings', NORMAL);
  await settings.getByLabel('Ladder').fill('direct,pool:slow');
  await settings.getByRole('button', { name: 'Save' }).click();
  await settings.getByRole('strong').getByText('escalate: this service has no pool slow').waitFor();
  await settings.getByLabel('Ladder').fill('direct,pool:fast');
  await settings.getByLabel('Proxy megabytes a day').fill('500');
  await settings.getByRole('button', { name: 'Save' }).click();
  await eventually(async () => {
    const saved = { escalate: 'direct,pool:fast', max_proxy_megabytes_a_day: 500 };
    expect(await crawler.details()).toMatchObject(saved);
  });
  await settings.context().close();
  browser.problems.splice(0).forEach((each) => expect(each).toContain('400'));
});

test('an account makes, changes and removes a pool of its own in the console', async () => {
  await using proxy = await startProxy({});
  await using site = await startSite();
  const secret = 'sesame-seed-4713';
  await using app = await startApp();
  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/proxies', NORMAL);
  const seen: string[] = [];
  await page.getByRole('button', { name: 'New pool' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('mine');
  const bad = `http://user:${secret}@10.0.0.1:3128`;
  await dialog.getByLabel('Proxies', { exact: true }).fill(`${proxy.url}\n${bad}`);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByRole('strong').getByText('proxies[1] names 10.0.0.1').waitFor();
  await dialog.getByLabel('Proxies', { exact: true }).fill(proxy.url);
  await dialog.getByRole('button', { name: 'Save' }).click();
  const row = page
    .getByRole('table', { name: 'Pools' })
    .getByRole('row')
    .filter({ hasText: 'mine' });
  await row.waitFor();
  const query = { token: NORMAL, format: 'json', proxy: 'mine', url: `${site.url}/page/1` };
  const { json } = await app.rest('GET', `/?${new URLSearchParams(query)}`);
  expect(json).toMatchObject({ pc_status: 200 });
  await row.getByRole('button', { name: 'Show the proxies of mine' }).click();
  const proxies = page.getByRole('table', { name: 'Proxies' }).getByRole('row');
  await proxies
    .filter({ hasText: new URL(proxy.url).host })
    .getByText(site.host)
    .waitFor();
  seen.push(await page.content());

  await row.getByRole('button', { name: 'Change mine' }).click();
  await dialog.getByLabel('Countries').fill('DE, FR');
  seen.push(await dialog.innerHTML());
  expect(await dialog.getByLabel('Proxies', { exact: true }).inputValue()).toBe('');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row.getByText('DE, FR').waitFor();
  await row.getByRole('button', { name: 'Delete mine' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No pool of your own yet').waitFor();
  for (const each of seen) expect(each).not.toMatch(/password@127|sesame/);
  await page.context().close();
  browser.problems.splice(0).forEach((each) => expect(each).toContain('400'));
});
