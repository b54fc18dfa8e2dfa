import { expect, test } from 'vitest';
import type { CrawlRequest } from '../../../src/domain/job.ts';
import { assertKeyLength, normalUrl, uniqueKey } from '../../../src/domain/unique-key.ts';

const request = (url: string, more: Partial<CrawlRequest> = {}): CrawlRequest => ({
  url,
  method: 'GET',
  body: undefined,
  contentType: undefined,
  parameters: {},
  ...more,
});

test.each([
  // Host in lower case, default port, fragment.
  ['HTTPS://Shop.Example:443/A?b=1#top', 'https://shop.example/A?b=1'],
  ['http://shop.example:80', 'http://shop.example/'],
  ['http://shop.example:8080/', 'http://shop.example:8080/'],
  // Sorted by name; those of one name keep their order.
  ['https://a.example/?b=2&a=1&b=1', 'https://a.example/?a=1&b=2&b=1'],
  ['https://a.example/p?', 'https://a.example/p'],
  // Escapes of one byte are the same, and nothing else is decoded.
  ['https://a.example/?q=%e9', 'https://a.example/?q=%E9'],
  ['https://a.example/?q=%E8', 'https://a.example/?q=%E8'],
  ['https://a.example/?q=%zz', 'https://a.example/?q=%zz'],
  ['https://a.example/?q=%25zz', 'https://a.example/?q=%25zz'],
  ['https://a.example/?q=é&p', 'https://a.example/?p&q=%C3%A9'],
  // Dots and the path keep their meaning.
  ['https://a.example/x/../y', 'https://a.example/y'],
])('%s is compared as %s', (url, normal) => {
  expect(normalUrl(url)).toBe(normal);
});

test('a request without a given key has that of its URL, method and body', () => {
  const url = 'https://a.example/?a=1&b=2';
  const key = uniqueKey('', request(url));
  expect(uniqueKey('', request('https://A.example/?b=2&a=1#x'))).toBe(key);
  const body = (text: string) => Buffer.from(text);
  const post = uniqueKey('', request(url, { method: 'POST', body: body('1') }));
  expect(post).not.toBe(key);
  expect(uniqueKey('', request(url, { method: 'POST', body: body('2') }))).not.toBe(post);
  expect(uniqueKey('', request(url, { method: 'POST', body: body('1') }))).toBe(post);
});

test('a given key stands for any URL, and is refused by name when it is too long', () => {
  expect(uniqueKey('item 7', request('https://a.example/'))).toBe(
    uniqueKey('item 7', request('https://b.example/')),
  );
  expect(() => assertKeyLength('x'.repeat(257))).toThrow(
    expect.objectContaining({ kind: 'invalid', field: 'unique_key' }),
  );
});
