import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isReservedHeader, parseCallbackHeaders } from '../../../src/domain/callback-headers.ts';
import { DomainError } from '../../../src/domain/errors.ts';

describe('accepted', () => {
  test.each<[why: string, text: string, pairs: (readonly [string, string])[]]>([
    ['no headers', '', []],
    ['only spaces', '  ', []],
    ['one pair by bar', 'X-Token|abc', [['X-Token', 'abc']]],
    ['one pair by colon', 'X-Token:abc', [['X-Token', 'abc']]],
    [
      'pairs by bar',
      'X-A|1|X-B|2',
      [
        ['X-A', '1'],
        ['X-B', '2'],
      ],
    ],
    [
      'pairs by colon',
      'X-A:1|X-B:2',
      [
        ['X-A', '1'],
        ['X-B', '2'],
      ],
    ],
    ['a colon in a value of a bar pair', 'X-Back|http://a/b', [['X-Back', 'http://a/b']]],
    ['more colons in a value of a colon pair', 'X-Back:http://a/b', [['X-Back', 'http://a/b']]],
    [
      'one part without a colon makes all alternate',
      'X-A|k:v|X-B|w',
      [
        ['X-A', 'k:v'],
        ['X-B', 'w'],
      ],
    ],
    ['spaces around names and values', ' X-A : 1 ', [['X-A', '1']]],
    ['an empty value by colon', 'X-A:', [['X-A', '']]],
    ['an empty value by bar', 'X-A|', [['X-A', '']]],
    ['a bar at the end, colon pairs', 'X-A:1|', [['X-A', '1']]],
    ['a bar at the end, bar pairs', 'X-A|1|', [['X-A', '1']]],
    [
      'the same name twice',
      'X-A:1|X-A:2',
      [
        ['X-A', '1'],
        ['X-A', '2'],
      ],
    ],
    ['latin-1 values', 'X-A|café', [['X-A', 'café']]],
    ['credentials for the endpoint', 'Authorization:Bearer t', [['Authorization', 'Bearer t']]],
    ['every character a name may have', "!#$%&'*+.^_`~-aZ9|1", [["!#$%&'*+.^_`~-aZ9", '1']]],
  ])('%s', (_why, text, pairs) => {
    expect(parseCallbackHeaders(text)).toEqual(pairs);
  });
});

describe('refused', () => {
  test.each<[why: string, text: string]>([
    ['an odd number of parts', 'X-A|1|X-B'],
    ['a name alone', 'X-A'],
    ['an empty name by bar', '|1'],
    ['an empty name by colon', ':1'],
    ['a space in a name', 'X A|1'],
    ['a name beyond ASCII', 'Xé|1'],
    ['a line break in a value', 'X-A|1\r\nX-B: 2'],
    ['a line break at the end of a value', 'X-A:1\n'],
    ['a line break in a name', 'X-A\n|1'],
    ['a NUL', 'X-A|\0'],
    ['DEL', 'X-A|\x7f'],
    ['a C1 control', 'X-A|\x85'],
    ['a value beyond latin-1', 'X-A|日本'],
    ['33 headers', Array.from({ length: 33 }, (_, at) => `X-${at}:1`).join('|')],
    ['too many characters', `X-A|${'a'.repeat(4_094)}`],
    // Hop by hop, or part of the framing.
    ...['Connection', 'Keep-Alive', 'Proxy-Connection', 'TE', 'Trailer', 'Transfer-Encoding'].map(
      (name): [string, string] => [name, `${name}|x`],
    ),
    ...['Upgrade', 'Host', 'Expect', 'Proxy-Authorization', 'HTTP2-Settings'].map(
      (name): [string, string] => [name, `${name}:x`],
    ),
    // Set by the delivery.
    ...[
      'Content-Length',
      'Content-Type',
      'content-encoding',
      'User-Agent',
      'rid',
      'RID',
      'url',
    ].map((name): [string, string] => [name, `${name}|x`]),
    ...['cb_status', 'CB-Status', 'Pc_Status', 'original_status', 'Original-Status'].map(
      (name): [string, string] => [name, `${name}|x`],
    ),
    ...['webhook-id', 'Webhook_Signature', 'webhook-timestamp', 'Content_Length'].map(
      (name): [string, string] => [name, `${name}|x`],
    ),
    ['one bad header among good ones', 'X-A|1|Host|evil|X-B|2'],
  ])('%s', (_why, text) => {
    expect(() => parseCallbackHeaders(text)).toThrow(
      expect.objectContaining({
        kind: 'invalid',
        reason: 'invalid_callback_headers',
        field: 'callback_headers',
      }),
    );
  });
});

test('the limits themselves are allowed', () => {
  expect(parseCallbackHeaders(`X-A|${'a'.repeat(4_093)}`)).toHaveLength(1);
  expect(
    parseCallbackHeaders(Array.from({ length: 32 }, (_, at) => `X-${at}:1`).join('|')),
  ).toHaveLength(32);
});

test('a very long text is answered quickly', () => {
  // Processor time, because the time of the clock includes what a busy machine does for others.
  const before = process.threadCpuUsage();
  expect(() => parseCallbackHeaders(`X-A|${' '.repeat(1_000_000)}|`.repeat(2))).not.toThrow();
  expect(() => parseCallbackHeaders('|'.repeat(1_000_001))).toThrow(DomainError);
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(1_000);
});

const awkward = fc.string({
  unit: fc.oneof(
    fc.constantFrom('|', ':', ' ', '\t', '\r', '\n', '-', '_', 'a', 'X', '1', '\0', 'é', '日'),
    fc.string({ minLength: 1, maxLength: 1, unit: 'binary' }),
    fc.constantFrom('X-A|', 'X-B:', 'Host|', 'Content-Length:'),
  ),
  maxLength: 40,
});

test.each([
  'Screenshot-Failed',
  'screenshot_failed',
  'RID',
  'Pushed-Url',
  'stored_at',
  'Cb_Status',
])('a client cannot set %s, which deliveries set', (name) => {
  expect(() => parseCallbackHeaders(`${name}:x`)).toThrow('is set by the delivery');
});

test('any text ends in headers that HTTP can carry, or in an invalid callback_headers', () => {
  fc.assert(
    fc.property(awkward, (text) => {
      let pairs: ReturnType<typeof parseCallbackHeaders>;
      try {
        pairs = parseCallbackHeaders(text);
      } catch (error) {
        expect(error).toMatchObject({ kind: 'invalid', field: 'callback_headers' });
        return;
      }
      // The platform's own check is the judge; it throws for what is illegal.
      const headers = new Headers();
      for (const [name, value] of pairs) {
        headers.append(name, value);
        expect(isReservedHeader(name)).toBe(false);
      }
    }),
    { numRuns: 3_000 },
  );
});

test('what was written in either format is read back', () => {
  const name = fc
    .stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,20}$/)
    .filter((text) => !isReservedHeader(text));
  const value = fc.stringMatching(/^[!-9;-{}~]{1,20}$/);
  const headers = fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(headers, (pairs) => {
      expect(parseCallbackHeaders(pairs.map((pair) => pair.join('|')).join('|'))).toEqual(pairs);
      expect(parseCallbackHeaders(pairs.map((pair) => pair.join(':')).join('|'))).toEqual(pairs);
    }),
  );
});
