import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseCallbackUrl } from '../../../src/domain/callback-url.ts';
import { parseCrawlerName } from '../../../src/domain/crawler-name.ts';

describe('callback URLs', () => {
  test.each<[why: string, text: string, url: string]>([
    ['plain', 'https://example.com/hook', 'https://example.com/hook'],
    ['http with a port', 'http://example.com:8080/h', 'http://example.com:8080/h'],
    ['a query with a token', 'https://a.b/h?token=x%20y', 'https://a.b/h?token=x%20y'],
    ['spaces around', '  https://a.b/h\n', 'https://a.b/h'],
    ['no path', 'https://a.b', 'https://a.b/'],
    ['capitals', 'HTTPS://A.B/H', 'https://a.b/H'],
    ['a fragment, which is never sent', 'https://a.b/h#part', 'https://a.b/h'],
    ['credentials', 'https://user:pass@a.b/h', 'https://user:pass@a.b/h'],
    ['an international name', 'https://bücher.example/ü', 'https://xn--bcher-kva.example/%C3%BC'],
    ['a literal address', 'http://[2001:db8::1]/h', 'http://[2001:db8::1]/h'],
    ['the longest', `https://a.b/${'x'.repeat(2_036)}`, `https://a.b/${'x'.repeat(2_036)}`],
  ])('%s', (_why, text, url) => {
    expect(parseCallbackUrl(text)).toBe(url);
  });

  test.each<[why: string, text: string]>([
    ['empty', ''],
    ['spaces', ' '],
    ['relative', '/hook'],
    ['no scheme', 'example.com/hook'],
    ['another scheme', 'ftp://example.com/'],
    ['a script', 'javascript:alert(1)'],
    ['no slashes', 'http:example.com'],
    ['no host', 'http://'],
    ['a bad port', 'http://a.b:99999/'],
    ['a bad name', 'http://a b/'],
    ['too long', `https://a.b/${'x'.repeat(2_037)}`],
    ['too long once encoded', `https://a.b/${'ü'.repeat(1_000)}`],
  ])('refuses: %s', (_why, text) => {
    expect(() => parseCallbackUrl(text)).toThrow(
      expect.objectContaining({ kind: 'invalid', field: 'callback_url' }),
    );
  });

  test('any text ends in a URL that can be requested and stays the same, or in an invalid callback_url', () => {
    const text = fc.oneof(
      fc.webUrl({ withFragments: true, withQueryParameters: true }),
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.string({ unit: 'binary', maxLength: 30 }).map((rest) => `http://${rest}`),
      fc.string({ unit: 'binary', maxLength: 30 }).map((rest) => `https://a.b/${rest}`),
    );
    fc.assert(
      fc.property(text, (candidate) => {
        let url: string;
        try {
          url = parseCallbackUrl(candidate);
        } catch (error) {
          expect(error).toMatchObject({ kind: 'invalid', field: 'callback_url' });
          return;
        }
        expect(url).toMatch(/^https?:\/\/[\x21-\x7e]+$/);
        expect(parseCallbackUrl(url)).toBe(url);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('crawler names', () => {
  test.each(['a', '9', 'My-Crawler_1.x', 'stats2', 'Stats', 'a'.repeat(64)])('%s', (name) => {
    expect(parseCrawlerName(name)).toBe(name);
  });

  test.each(['', 'stats', '.a', '-a', '_a', 'a b', 'a/b', 'é', 'a\n', 'a'.repeat(65)])(
    'refuses %j',
    (name) => {
      expect(() => parseCrawlerName(name)).toThrow(
        expect.objectContaining({ kind: 'invalid', field: 'name' }),
      );
    },
  );
});
