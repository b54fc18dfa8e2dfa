import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SCRAPER_NAMES } from '../../src/domain/parameter-table.ts';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startReceiver } from '../support/receiver.ts';
import { pageHtml, startSite } from '../support/site.ts';

let app: TestApp;

beforeAll(async () => {
  app = await startApp();
});

afterAll(() => app[Symbol.asyncDispose]());

const fixtures = join(import.meta.dirname, '..', 'fixtures', 'scrapers');
const fixture = (name: string): string => readFileSync(join(fixtures, name), 'utf8');

function startShop() {
  const serve = (html: string) => (_request: unknown, response: ServerResponse) =>
    void response
      .writeHead(200, {
        'content-type': 'text/html; charset=utf-8',
        'x-shop': 'yes',
        'set-cookie': 'a=1',
      })
      .end(html);
  return startSite({
    routes: {
      '/product': serve(fixture('product.html')),
      '/article': serve(fixture('article.html')),
      '/deep': serve('<div>'.repeat(200_000)),
    },
  });
}

test('md: the page as Markdown, or its main content only', async () => {
  await using site = await startShop();
  const url = encodeURIComponent(`${site.url}/article`);
  const whole = await app.rest('GET', `/?token=${NORMAL}&url=${url}&format=md`);
  expect(whole.headers.get('content-type')).toContain('text/markdown');
  expect(whole.text).toContain('## How it began');
  expect(whole.text).toContain('- One **point**'.replace('- ', '-   '));
  expect(whole.text).toContain('Imprint');
  expect(whole.text).toContain(`[more](${site.url}/more?a=1)`);
  expect(whole.text).toContain(`[the end](${site.url}/article#end)`);
  expect(whole.text).toContain(`![a picture](${site.url}/img/a.png)`);
  const main = await app.rest('GET', `/?token=${NORMAL}&url=${url}&format=md&md_readability=true`);
  expect(main.text).toContain('Paragraph 8');
  expect(main.text).not.toContain('Imprint');
});

test('scraper and autoparse: structured data, inline and at a webhook', async () => {
  await using site = await startShop();
  await using receiver = await startReceiver();
  const url = encodeURIComponent(`${site.url}/product`);
  const inline = await app.rest('GET', `/?token=${NORMAL}&url=${url}&scraper=product`);
  expect(inline.json).toMatchObject({
    original_status: 200,
    pc_status: 200,
    cb_status: 200,
    url: `${site.url}/product`,
    body: { name: 'Blue kettle', price: 1299, currency: 'EUR' },
  });
  const crawler = await createCrawler(app, 'scrape', { callback_url: receiver.url });
  await crawler.push(`${site.url}/product`, '&autoparse=true&format=json');
  const [post] = await receiver.until(1);
  const { body = '' } = (post?.json ?? {}) as { body?: string };
  expect(JSON.parse(body)).toMatchObject({ scraper: 'product', sku: 'K-1' });
  const unknown = await app.rest('GET', `/?token=${NORMAL}&url=${url}&scraper=magic`);
  expect([unknown.status, unknown.json.field]).toEqual([422, 'scraper']);
  expect(unknown.json.error).toContain('generic-extractor');
});

test('with a scraper there is an envelope everywhere but at a webhook, of a failed page, too', async () => {
  await using site = await startShop();
  await using receiver = await startReceiver();
  const url = `${site.url}/product`;
  const kettle = { name: 'Blue kettle' };
  const inline = await app.rest('GET', `/?token=${NORMAL}&url=${url}&scraper=product&store=true`);
  // The public python SDK: response['headers']['pc_status'], then json.loads(response['body'])['body'].
  expect(inline.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(inline.headers.get('pc_status')).toBe('200');
  expect(inline.json).toMatchObject({ pc_status: 200, body: kettle });
  const crawler = await createCrawler(app, 'kept');
  for (const rid of [inline.json.rid, await crawler.push(url, '&scraper=product')]) {
    const stored = await crawler.stored(rid);
    const envelope = JSON.parse(stored.json.body);
    expect(envelope).toMatchObject({ original_status: 200, pc_status: 200, rid, body: kettle });
  }
  const json = await app.rest('GET', `/?token=${NORMAL}&url=${url}&scraper=product&format=json`);
  expect(JSON.parse(json.json.body)).toMatchObject(kettle);
  const failed = await app.rest(
    'GET',
    `/?token=${NORMAL}&url=${site.url}/status/500&scraper=product`,
  );
  expect(failed.json).toMatchObject({ original_status: 500, body: pageHtml('status 500', 0) });
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url });
  await hook.push(url, '&scraper=product');
  expect((await receiver.until(1))[0]?.json).toMatchObject(kettle);
});

test.each([
  // Pages without the tags that HTML lets authors leave out.
  '<!doctype html><title>Shop</title><h1>Shoes</h1><p>Red shoes <b>12 EUR</b><ul><li>one<li>two</ul>',
  '<html><h1>Shoes</h1>Red shoes <b>12 EUR</b></html>',
  '<!-- generated --><h1>Shoes</h1><p>Red shoes <b>12 EUR</b>',
])('text of %s', async (html) => {
  await using site = await startSite({
    routes: {
      '/bare': (_request, response) =>
        void response.writeHead(200, { 'content-type': 'text/html' }).end(html),
    },
  });
  const crawl = (more: string) => app.rest('GET', `/?token=${NORMAL}&url=${site.url}/bare${more}`);
  expect((await crawl('&format=md')).text).toContain('# Shoes\n\nRed shoes **12 EUR**');
  const readable = (await crawl('&format=md&md_readability=true')).text;
  expect(readable).toContain('Red shoes **12 EUR**');
  expect(readable).not.toMatch(/^# *$/m);
  expect((await crawl('&scraper=generic-extractor')).json.body.text).toContain('Red shoes 12 EUR');
  expect((await crawl('&scraper=article')).json.body.content).toContain('Red shoes 12 EUR');
});

test('a page of words only, and one without anything, are read without an error', async () => {
  await using site = await startSite({
    routes: {
      '/words': (_request, response) =>
        void response.writeHead(200, { 'content-type': 'text/html' }).end('just words'),
      '/comment': (_request, response) =>
        void response.writeHead(200, { 'content-type': 'text/html' }).end('<!---->'),
    },
  });
  for (const scraper of SCRAPER_NAMES) {
    for (const page of ['words', 'comment']) {
      const url = `${site.url}/${page}`;
      const reply = await app.rest('GET', `/?token=${NORMAL}&url=${url}&scraper=${scraper}`);
      expect([reply.status, reply.json.body.error]).toEqual([200, undefined]);
    }
  }
});

test('a document nested beyond reason is answered, and the next page is read as usual', async () => {
  await using site = await startShop();
  const deep = encodeURIComponent(`${site.url}/deep`);
  const answer = await app.rest('GET', `/?token=${NORMAL}&url=${deep}&scraper=links`);
  expect(answer.status).toBe(200);
  const url = encodeURIComponent(`${site.url}/product`);
  const next = await app.rest('GET', `/?token=${NORMAL}&url=${url}&scraper=links`);
  expect(next.json.body.links).toHaveLength(2);
});

test('get_headers and get_cookies tell what the target sent; pretty indents', async () => {
  await using site = await startShop();
  const url = encodeURIComponent(`${site.url}/product`);
  const html = await app.rest(
    'GET',
    `/?token=${NORMAL}&url=${url}&get_headers=true&get_cookies=true`,
  );
  expect(html.headers.get('original_x_shop')).toBe('yes');
  expect(html.headers.get('original_set_cookie')).toBe('a=1');
  const json = await app.rest(
    'GET',
    `/?token=${NORMAL}&url=${url}&format=json&pretty=True&get_headers=1`,
  );
  expect(json.json.original_x_shop).toBe('yes');
  expect(json.text).toContain('\n  "');
  const plain = await app.rest('GET', `/?token=${NORMAL}&url=${url}`);
  expect(plain.headers.get('original_x_shop')).toBeNull();
});

test('a scraper that is not there is refused, with the one that is nearest', async () => {
  const refused = async (scraper: string) => {
    const url = encodeURIComponent('https://example.com/');
    const reply = await app.rest('GET', `/?token=${NORMAL}&url=${url}&scraper=${scraper}`);
    expect(reply.status).toBe(422);
    return reply.text;
  };
  expect(await refused('amazon-product-details')).toContain('nearest to the name given is product');
  expect(await refused('x')).not.toContain('nearest');
  expect(await refused('google-serp')).toContain('nearest to the name given is generic-extractor');
});
