import { expect, test } from 'vitest';
import { parseTargetUrl } from '../../../src/domain/target-url.ts';
import { laneOf } from '../../../src/service/queue/lane-of.ts';

test.each([
  ['https://shop.example.com/a?b', 'shop.example.com', 'example.com'],
  ['https://shop.example.com:8443/', 'shop.example.com:8443', 'example.com'],
  ['https://a.b.example.co.uk/', 'a.b.example.co.uk', 'example.co.uk'],
  // Suffixes that a company has registered count as its domain: its servers have one operator.
  ['https://someone.github.io/', 'someone.github.io', 'github.io'],
  ['http://192.0.2.7:8080/', '192.0.2.7:8080', '192.0.2.7'],
  ['http://[2001:db8::1]:8080/', '[2001:db8::1]:8080', '[2001:db8::1]'],
  ['http://intranet/', 'intranet', 'intranet'],
  ['http://BÜCHER.example.de/', 'xn--bcher-kva.example.de', 'example.de'],
])('%s waits in the lane of its host, or of its domain', (url, host, domain) => {
  const target = parseTargetUrl(url);
  expect(laneOf(target.host, false)).toBe(host);
  expect(laneOf(target.host, true)).toBe(domain);
});
