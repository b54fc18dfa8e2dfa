import { expect, test } from 'vitest';
import { createSitemapParser } from '../../../src/service/crawls/sitemap-parser.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';

const PIECE = 64 * 1024;

const piece = (text: string): string => text.repeat(Math.floor(PIECE / text.length));

/** Reads a sitemap that has `begin`, and then the same piece `count` times. */
function read(begin: string, repeated: string, count: number): void {
  const parser = createSitemapParser(true);
  parser.write(`<urlset>${begin}`);
  for (let at = 0; at < count; at += 1) parser.write(repeated);
}

test.each([
  // 10 MiB of these took a gigabyte, and 58 KiB of gzip ended the process.
  ['elements that nest', '', piece('<a>'), 1, 'too deep'],
  ['a text', '', piece('text'), 17, 'too long'],
  ['a comment', '<!--', piece('text'), 17, 'too long'],
  ['a value of an attribute', '<a b="', piece('text'), 17, 'too long'],
  ['attributes', '<a ', piece(' abcdefg="1" hijklm="2" '), 17, 'too long'],
  ['an entity', '&', piece('text'), 17, 'too long'],
])('%s without end: refused', (_, begin, repeated, count, message) => {
  expect(() => read(begin, repeated, count)).toThrow(message);
});

test('long comments and many elements are no long token', () => {
  expect(() => read('', `<a>${piece('text')}</a><!--${piece('text')}-->`, 40)).not.toThrow();
});

test('an entry does not keep the piece that it was read from', async () => {
  const parser = createSitemapParser(true);
  const found: unknown[] = [];
  await collectGarbage();
  const before = process.memoryUsage().heapUsed;
  parser.write('<urlset>');
  for (let at = 0; at < 300; at += 1) {
    const text = Buffer.from(
      `<url><loc>http://a.example/a-page-of-a-shop/${at}</loc></url><!--${piece('text')}-->`,
    ).toString();
    found.push(...parser.write(text));
  }
  await collectGarbage();
  expect(found).toHaveLength(300);
  // The pieces together have 19 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
});
