import { describe, expect, test } from 'vitest';
import type { Page } from '../../../src/engine/engine.ts';
import { documentWork, formatPage } from '../../../src/engine/extract/format-page.ts';

const PAGE: Page = {
  cbStatus: 200,
  originalStatus: 200,
  url: 'http://site.test/',
  body: Buffer.from('<h1>Title</h1>'),
  contentType: 'text/html; charset=utf-8',
  isText: true,
  headers: [],
};
const FAILED: Page = { ...PAGE, failure: { reason: 'captcha', transient: true } };
const BINARY: Page = { ...PAGE, contentType: 'image/png', isText: false };
const JSON_TEXT: Page = { ...PAGE, contentType: 'application/json; charset=utf-8' };

describe('a document is parsed', () => {
  test.each([
    [PAGE, {}, undefined],
    [PAGE, { format: 'html' }, undefined],
    [PAGE, { format: 'md' }, 'md'],
    [PAGE, { format: 'md', md_readability: true }, 'readable_md'],
    [PAGE, { md_readability: true }, undefined],
    [PAGE, { autoparse: true }, 'autoparse'],
    // A named scraper says more than autoparse, and both more than Markdown.
    [PAGE, { scraper: 'links', autoparse: true, format: 'md' }, 'links'],
    [PAGE, { autoparse: true, format: 'md' }, 'autoparse'],
    [FAILED, { scraper: 'links' }, undefined],
    [BINARY, { scraper: 'links' }, undefined],
    [JSON_TEXT, { format: 'md' }, undefined],
    [{ ...PAGE, contentType: 'application/xhtml+xml; charset=utf-8' }, { format: 'md' }, 'md'],
  ] as const)('of %o with %j for %s', (page, parameters, work) => {
    expect(documentWork(page, parameters)).toBe(work);
  });
});

describe('a page is delivered', () => {
  const shown = (...input: Parameters<typeof formatPage>) => {
    const { body, contentType } = formatPage(...input);
    return [contentType, Buffer.from(body).toString()];
  };
  const asItIs = ['text/html; charset=utf-8', '<h1>Title</h1>'];

  test('as it is when nothing else was asked for, or there is no output', () => {
    expect(shown(PAGE, {}, { text: 'unused' })).toEqual(asItIs);
    expect(shown(PAGE, { format: 'md' }, undefined)).toEqual(asItIs);
  });

  test('as Markdown, or as it is when that failed', () => {
    expect(shown(PAGE, { format: 'md' }, { text: '# Title' })).toEqual([
      'text/markdown; charset=utf-8',
      '# Title',
    ]);
    expect(shown(PAGE, { format: 'md' }, { failed: 'broken' })).toEqual(asItIs);
  });

  test('as the data of a scraper, or as its error', () => {
    const json = 'application/json; charset=utf-8';
    expect(shown(PAGE, { scraper: 'links' }, { text: '{"links":[]}' })).toEqual([
      json,
      '{"links":[]}',
    ]);
    expect(shown(PAGE, { autoparse: true }, { failed: 'broken' })).toEqual([
      json,
      '{"error":"broken"}',
    ]);
  });
});
