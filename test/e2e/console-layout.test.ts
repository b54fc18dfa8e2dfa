import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import { goWithin } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Site, startSite } from '../support/site.ts';

let app: TestApp;
let site: Site;
let browser: ConsoleBrowser;

/** As long as a name may be. */
const LONG = `shop-${'long-name-of-a-crawler-'.repeat(3)}`.slice(0, 64);
/** The smallest text, in pixels, that is read all day. */
const MIN_PIXELS = 12.5;
/** One red pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  'base64',
);
/** A picture that says where its script has run. */
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1">
<script>document.documentElement.dataset.origin = origin</script></svg>`;

beforeAll(async () => {
  site = await startSite({
    routes: {
      '/red.png': (_request, response) => {
        response.writeHead(200, { 'content-type': 'image/png' }).end(PNG);
      },
      '/script.svg': (_request, response) => {
        response.writeHead(200, { 'content-type': 'image/svg+xml' }).end(SVG);
      },
    },
  });
  app = await startApp();
  browser = await openConsoleBrowser(app.url);
  const path = 'hook/2f9c1b7ad6e04c55a1/incoming?token=very-secret-word&tenant=another-one';
  await createCrawler(app, LONG, { callback_url: `${site.url}/${path}` });
  for (let at = 0; at < 30; at += 1) await createCrawler(app, `crawler-${at}`);
});

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await app?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

afterEach(() => {
  expect(browser.problems.splice(0)).toEqual([]);
});

test('no cell of the list of crawlers lies over the next one', async () => {
  const page = await browser.open('/crawlers', NORMAL, { width: 1_280, height: 800 });
  await page.getByText('crawler-29').first().waitFor();
  const wider = await page.evaluate(() =>
    [...document.querySelectorAll('tbody td')]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map(({ textContent }) => textContent),
  );
  expect(wider).toEqual([]);
  await page.context().close();
});

test('nothing scrolls to the side at 375 px, whatever names and callback URLs there are', async () => {
  const page = await browser.open('/crawlers', NORMAL, { width: 375, height: 800 });
  for (const tab of ['', 'overview', 'jobs', 'deliveries', 'push', 'settings']) {
    await goWithin(page, tab === '' ? '/crawlers' : `/crawlers/${LONG}/${tab}`);
    await page
      .getByText(tab === '' ? 'crawler-29' : LONG)
      .first()
      .waitFor();
    const beyond = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect([tab, beyond]).toEqual([tab, 0]);
  }
  await page.context().close();
});

test('rows are compact on a telephone, and a table at 200 % zoom', async () => {
  const page = await browser.open('/crawlers', NORMAL, { width: 375, height: 800 });
  const heightOf = (name: string) =>
    page
      .getByRole('row')
      .filter({ hasText: name })
      .evaluate((row) => row.getBoundingClientRect().height);
  await page.getByText('crawler-29').waitFor();
  expect(await heightOf('crawler-29')).toBeLessThan(140);
  await page.setViewportSize({ width: 720, height: 450 });
  expect(await heightOf('crawler-29')).toBeLessThan(60);
  await page.getByRole('button', { name: 'Waiting' }).waitFor();
  await page.context().close();
});

test('a long name leaves the other columns their room, and is whole on hover', async () => {
  const page = await browser.open('/crawlers', NORMAL);
  const name = page.getByRole('link', { name: LONG });
  expect(await name.getAttribute('title')).toBe(LONG);
  const table = page.locator('.table-scroll');
  expect(await table.evaluate((each) => each.scrollWidth - each.clientWidth)).toBe(0);
  await page.context().close();
});

test('no text is smaller than people read all day', async () => {
  const page = await browser.open('/crawlers', NORMAL);
  for (const path of ['/crawlers', `/crawlers/${LONG}`, `/crawlers/${LONG}/settings`, '/account']) {
    await goWithin(page, path);
    await page.locator('main h1').waitFor();
    const small = await page.evaluate((least) => {
      const found: string[] = [];
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const { parentElement, textContent } = texts.currentNode;
        if (parentElement === null || textContent?.trim() === '') continue;
        const size = Number.parseFloat(getComputedStyle(parentElement).fontSize);
        if (size < least) found.push(`${size}: ${textContent}`);
      }
      return found;
    }, MIN_PIXELS);
    expect([path, small]).toEqual([path, []]);
  }
  await page.context().close();
});

test('an example breaks no word, and a rid stays in its card in one line', async () => {
  const page = await browser.open('/crawlers/+new', NORMAL, { width: 1_280, height: 800 });
  await page.getByLabel('Name').fill('shop');
  await page.getByLabel('Delay, milliseconds').fill('250');
  for (const path of ['/crawlers/+new', '/crawl']) {
    if (path === '/crawl') await goWithin(page, path);
    const example = page.getByRole('region', { name: 'REST' });
    await example.waitFor();
    const lines = await example.evaluate((code) => {
      const text = document.createRange();
      text.selectNodeContents(code);
      const tops = [...text.getClientRects()].map(({ top }) => Math.round(top));
      return { drawn: new Set(tops).size, written: code.textContent.split('\n').length };
    });
    expect([path, lines.drawn]).toEqual([path, lines.written]);
  }
  expect(await page.getByRole('region', { name: 'REST' }).innerText()).toContain('example.com');
  const crawler = await createCrawler(app, 'one-line');
  const rid = await crawler.push(`${site.url}/page/1`);
  await crawler.stored(rid);
  await goWithin(page, `/jobs/${rid}`);
  for (const width of [1_280, 768, 375]) {
    await page.setViewportSize({ width, height: 800 });
    const shown = page.getByRole('region', { name: 'Result' }).getByText(rid);
    const seen = await shown.evaluate((code) => {
      const right = code.closest('.card')?.getBoundingClientRect().right ?? 0;
      return [code.getClientRects().length, code.getBoundingClientRect().right <= right];
    });
    expect([width, ...seen]).toEqual([width, 1, true]);
  }
  await page.context().close();
});

test('the page of a crawler shows no secret of its callback URL', async () => {
  const page = await browser.open(`/crawlers/${LONG}`, NORMAL);
  await page
    .getByText(`${new URL(site.url).host}/hook/•••/incoming?token=•••&tenant=•••`)
    .waitFor();
  const html = await page.content();
  for (const secret of ['very-secret-word', 'another-one', '2f9c1b7ad6e04c55a1']) {
    expect(html).not.toContain(secret);
  }
  await page.context().close();
});

test('a stored picture is shown, and saved under its type', async () => {
  const pictures = await createCrawler(app, 'pictures');
  const rid = await pictures.push(`${site.url}/red.png`);
  await pictures.stored(rid);
  const page = await browser.open(`/find?rid=${rid}`, NORMAL);
  const picture = page.getByRole('img', { name: /Picture at .*red\.png/ });
  await picture.waitFor();
  await eventually(async () => {
    expect(await picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(1);
  });
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  expect((await saving).suggestedFilename()).toBe(`${rid}.png`);
  await page.context().close();
});

test('a stored picture that is opened in a tab has another origin than the service', async () => {
  const drawn = await createCrawler(app, 'drawn');
  const rid = await drawn.push(`${site.url}/script.svg`);
  await drawn.stored(rid);
  const page = await browser.open(`/find?rid=${rid}`, NORMAL);
  const picture = page.getByRole('img', { name: /Picture at .*script\.svg/ });
  const source = (await picture.getAttribute('src')) ?? '';
  const tab = await page.context().newPage();
  await tab.goto(source);
  expect(await tab.evaluate(() => document.documentElement.dataset.origin)).toBe('null');
  await page.context().close();
});

test('the next page of a list replaces the rows only when it is there', async () => {
  const long = await createCrawler(app, 'long');
  await long.post('pause');
  const items = Array.from({ length: 60 }, (_, at) => ({ url: `http://a.example/${at}` }));
  await app.rest('POST', `/crawler/${NORMAL}/long/push_batch`, { items });
  const page = await browser.open('/crawlers/long/jobs', NORMAL);
  await page.getByText('http://a.example/1', { exact: true }).waitFor();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/*.ActivityService/ListJobs', async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name: 'Back' }).waitFor();
  await page.getByText('http://a.example/1', { exact: true }).waitFor();
  release();
  await page.getByText('http://a.example/59', { exact: true }).waitFor();
  await page.context().close();
});

test('filters, results and attempts have an address', async () => {
  const kept = await createCrawler(app, 'addressed');
  const rid = await kept.push(`${site.url}/page/1`);
  await kept.stored(rid);
  const page = await browser.open('/crawlers/addressed/results', NORMAL);
  await page.getByRole('button', { name: 'Failed', exact: true }).click();
  expect(new URL(page.url()).search).toBe('?outcome=failed');
  await page.getByRole('button', { name: 'All', exact: true }).click();
  await page.getByRole('button', { name: /^Open the result of/ }).click();
  await page.getByRole('dialog').getByText(rid).waitFor();
  expect(await page.title()).toBe('Results · addressed · Crawlers · Queued Crawler');
  const address = new URL(page.url());
  expect(address.search).toBe(`?result=${rid}`);
  await page.context().close();

  const colleague = await browser.open(address.href.split('/console')[1] ?? '', NORMAL);
  await colleague.getByRole('dialog').getByText(rid).waitFor();
  await colleague.getByRole('button', { name: 'Close' }).click();
  expect(new URL(colleague.url()).search).toBe('');
  await goWithin(colleague, '/crawlers/addressed/jobs?state=retrying');
  const retrying = colleague.getByRole('button', { name: 'Retrying' });
  await retrying.waitFor();
  expect(await retrying.getAttribute('aria-pressed')).toBe('true');
  await colleague.context().close();
});

test('attempts of a delivery have an address', async () => {
  const hook = await createCrawler(app, 'delivering', { callback_url: `${site.url}/echo` });
  const rid = await hook.push(`${site.url}/page/2`);
  const page = await browser.open(`/crawlers/delivering/deliveries?delivery=${rid}`, NORMAL);
  await page.getByRole('dialog').getByRole('heading', { name: 'Attempts' }).waitFor();
  await page.context().close();
});
