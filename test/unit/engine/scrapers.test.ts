import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ScraperName } from '../../../src/domain/parameter-table.ts';
import { parseDocument } from '../../../src/engine/extract/parse-document.ts';
import { scraperFor, scrapers } from '../../../src/engine/extract/scrapers/scrapers.ts';

const folder = join(import.meta.dirname, '..', '..', 'fixtures', 'scrapers');

function pageOf(name: string) {
  const document = parseDocument(readFileSync(join(folder, name), 'utf8'));
  return { document, url: `https://shop.example/${name}` };
}

function scrape(scraper: ScraperName, fixture: string): unknown {
  return scrapers[scraper](pageOf(fixture));
}

test('product: JSON-LD within a graph, prices in either notation', () => {
  expect(scrape('product', 'product.html')).toEqual({
    name: 'Blue kettle',
    description: 'A kettle that is blue.',
    brand: 'Kettles & Co',
    sku: 'K-1',
    gtin: null,
    price: 1299,
    currency: 'EUR',
    availability: 'InStock',
    rating: 4.5,
    reviews: 12,
    image: 'https://shop.example/img/kettle.jpg',
  });
});

test('product: microdata when there is no JSON-LD', () => {
  const document = parseDocument(`<body><div itemscope itemtype="https://schema.org/Product">
    <span itemprop="name">Cup</span><span itemprop="price" content="4.20">4,20</span>
    <meta itemprop="priceCurrency" content="CHF"></div></body>`);
  const page = { document, url: 'https://shop.example/cup' };
  expect(scrapers.product?.(page)).toMatchObject({ name: 'Cup', price: 4.2, currency: 'CHF' });
});

test('article: title, author, date and the text without what surrounds it', () => {
  const found = scrape('article', 'article.html') as Record<string, string>;
  expect(found).toMatchObject({
    title: 'A story',
    byline: 'Anna Writer',
    published_at: '2026-03-01T08:00:00Z',
  });
  expect(found.content).toContain('Paragraph 8');
  expect(found.content).not.toContain('Imprint');
  expect(found.content).toMatch(/^How it began\nParagraph 1 /);
  expect(found.html).toContain('href="https://shop.example/more?a=1"');
  expect(found.html).toContain('src="https://shop.example/img/a.png"');
  expect(found.html).toContain(
    'srcset="https://shop.example/img/a.png 1x, https://shop.example/b.png 2x"',
  );
  expect(found.content).toMatch(/the end and \.\nOne point\nTwo$/);
});

test('article: a page of few words, without a title', () => {
  const document = parseDocument(
    '<h1>Shoes</h1><p>Red\nshoes <b>12</b> EUR<ul><li>one<li>two</ul>',
  );
  const page = { document, url: 'https://shop.example/' };
  expect(scrapers.article(page)).toMatchObject({
    title: null,
    content: 'Shoes\nRed shoes 12 EUR\none\ntwo',
  });
});

test('links: absolute, distinct, http only, with text', () => {
  expect(scrape('links', 'product.html')).toEqual({
    links: [
      { url: 'https://shop.example/tea', text: 'Tea', internal: true },
      { url: 'https://other.example/x', text: 'Other', internal: false },
    ],
  });
});

test('email-extractor: text and mailto, no pictures', () => {
  const { emails } = scrape('email-extractor', 'product.html') as { emails: string[] };
  expect(emails).toEqual(['sales@shop.example', 'info@shop.example', 'nobody@sees.example']);
});

test('email-extractor: blocks that touch are no part of each other', () => {
  const document = parseDocument(
    '<title>Shop</title>sales@shop.example<table><tr><td>Ann<td>ann@shop.example</table>bob@<b>shop</b>.example<div>x</div>y@shop.example',
  );
  expect(scrapers['email-extractor']?.({ document, url: 'https://shop.example/' })).toEqual({
    emails: ['sales@shop.example', 'ann@shop.example', 'bob@shop.example', 'y@shop.example'],
  });
});

test('metadata: what the page says of itself, broken JSON-LD passed over', () => {
  expect(scrape('metadata', 'product.html')).toMatchObject({
    title: 'Blue kettle | Shop',
    language: 'en',
    canonical: 'https://shop.example/kettle',
    open_graph: { title: 'Blue kettle', image: '/img/kettle.jpg' },
    json_ld: [{ '@type': 'BreadcrumbList' }, { '@type': 'Product' }],
  });
});

test('generic-extractor: text without scripts, headings, images, tables', () => {
  const found = scrape('generic-extractor', 'product.html') as Record<string, unknown>;
  expect(found).toMatchObject({
    headings: [{ level: 1, text: 'Blue kettle' }],
    images: [{ url: 'https://shop.example/img/kettle.jpg', alt: 'The kettle' }],
    tables: [
      [
        ['Size', '1 l'],
        ['Colour', 'blue'],
      ],
    ],
  });
  expect(found.text).toContain('Boils water.');
  expect(found.text).not.toContain('hidden');
});

test('autoparse goes by what the page says it is', () => {
  expect(scraperFor(pageOf('product.html'))).toBe('product');
  expect(scraperFor(pageOf('article.html'))).toBe('article');
  const document = parseDocument('<p>Anything</p>');
  const page = { document, url: 'https://shop.example/' };
  expect(scraperFor(page)).toBe('generic-extractor');
});

test('generic-extractor: a table within a cell is a table of its own', () => {
  const document = parseDocument(
    '<table><tr><th>a</th><td>b<table><tr><td>c</td></tr></table></td></tr></table>',
  );
  const page = { document, url: 'https://shop.example/' };
  expect(scrapers['generic-extractor']?.(page)).toMatchObject({
    tables: [[['a', 'b c']], [['c']]],
  });
});
