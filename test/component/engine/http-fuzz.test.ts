import { createServer, isIP } from 'node:net';
import { expect, test } from 'vitest';
import { parseRetryAfter } from '../../../src/domain/retry-after.ts';
import { parseSuccessCodes } from '../../../src/domain/status.ts';
import { createCookies } from '../../../src/engine/cookies.ts';
import { nextHop } from '../../../src/engine/http/redirect.ts';
import { parseRequestHeaders, requestHeaders } from '../../../src/engine/http/request-headers.ts';
import { isPublicAddress } from '../../../src/net/address-guard.ts';
import { parseContentEncoding } from '../../../src/net/content-decoder.ts';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { HttpError } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { startHttpEngine } from '../../support/http-engine.ts';
import { byLength } from '../../support/length.ts';
import { listen } from '../../support/listen.ts';
import { createNoise } from '../../support/noise.ts';
import { shownBody } from '../../support/steps.ts';

const SEED = 20_260_101;

const ADDRESS_PIECES = [
  '127',
  '.',
  '0',
  '1',
  '::',
  ':',
  'ffff',
  '10.0.0.1',
  '0x7f',
  '0177',
  '2130706433',
  '[',
  ']',
  '/',
  '8',
  ',',
  '%eth0',
  'fe80',
  '64:ff9b::',
  '2002:',
  '169.254.169.254',
  '８',
  'localhost',
  ':80',
  '255',
  '256',
  '8.8.8.8',
  '/129',
  ' ',
];
const URL_PIECES = [
  ...ADDRESS_PIECES,
  'http://',
  'https://',
  'HTTP:',
  '//',
  '\\',
  '@',
  'user:pw',
  '#',
  '?',
  '?a=b',
  '..',
  'xn--',
  'é',
  'example.test',
  '%00',
  '%',
  '%2f',
  '\t',
  '\n',
  'javascript:',
  'data:,',
  'file:///',
  '.',
  'a'.repeat(70),
];
const HEADER_PIECES = [
  'accept',
  ':',
  '|',
  ' ',
  '\r\n',
  'host',
  'text/html',
  ';',
  'charset=',
  'utf-8',
  '"',
  'shift_jis',
  'utf-16',
  ',',
  'gzip',
  'br',
  '=',
  'Path=/',
  'Domain=',
  'Expires=',
  'Max-Age=',
  '-1',
  '99999999999',
  'Thu, 01 Jan 2026 00:00:00 GMT',
  'image/png',
  'a',
  'b=1',
  '\u0000',
  'é',
  '日本',
  '+json',
  'application/',
  'Secure',
  '__Host-',
  '__proto__',
  'constructor',
];

/** Each has ten texts. */
const ROUNDS = byLength(5_000, 10_000);

test('parsing of nearly right texts never throws anything but its own errors', () => {
  const noise = createNoise(SEED);
  const cookies = createCookies();
  const hop = {
    url: new URL('http://a.test/b?c#d'),
    method: 'POST',
    withBody: true,
    sameOrigin: true,
  };
  const now = new Date('2026-01-01T00:00:00Z');
  const counts = { publicAddresses: 0, redirects: 0, refusedLists: 0, headers: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    const address = noise.text(ADDRESS_PIECES);
    const isPublic = isPublicAddress(address);
    if (isPublic) expect(isIP(address), address).not.toBe(0);
    counts.publicAddresses += Number(isPublic);

    const list = noise.text(ADDRESS_PIECES, 8);
    try {
      parseNetworkAllow(list);
    } catch (error) {
      counts.refusedLists += 1;
      expect(error).toHaveProperty('message', expect.stringContaining('"'));
    }

    const next = nextHop(hop, noise.pick([301, 302, 303, 307, 308, 200]), noise.text(URL_PIECES));
    if (next !== undefined && next !== 'invalid_redirect') {
      counts.redirects += 1;
      expect(next.url.protocol).toMatch(/^https?:$/);
      cookies.receive(next.url.href, [noise.text(HEADER_PIECES), noise.text(HEADER_PIECES)]);
      expect(cookies.headerFor(next.url.href).length).toBeLessThanOrEqual(8_192);
    }
    createCookies().give('http://a.test/', noise.text(HEADER_PIECES));

    const given = noise.text(HEADER_PIECES, 10);
    for (const [name, value] of parseRequestHeaders(given)) {
      counts.headers += 1;
      expect(`${name}${value}`).not.toMatch(/[\r\n\0]/);
    }
    const parameters = { request_headers: given, user_agent: noise.text(HEADER_PIECES) };
    const request = {
      url: 'http://a.test/',
      method: 'GET',
      body: undefined,
      contentType: given,
      parameters,
    } as const;
    for (const [, value] of requestHeaders(request, hop, noise.text(['a=1', '; ']))) {
      expect(value).not.toMatch(/[\r\n\0]/);
    }

    const page = shownBody(noise.bytes(64), noise.text(HEADER_PIECES));
    if (page.isText)
      expect(() => new TextDecoder('utf-8', { fatal: true }).decode(page.body)).not.toThrow();

    try {
      parseContentEncoding(noise.text(HEADER_PIECES));
    } catch (error) {
      expect(error).toHaveProperty('message', expect.stringMatching(/^\d+ content encodings$/));
    }
    const wait = parseRetryAfter(noise.text(HEADER_PIECES), now);
    if (wait !== undefined) expect(wait >= 0 && wait <= 86_400_000).toBe(true);
    parseSuccessCodes(noise.text(['403', ',', '-', '1e3', ' ']));
  }
  // Noise that never gets past the first check would prove nothing.
  for (const [what, count] of Object.entries(counts)) {
    expect(count, what).toBeGreaterThan(byLength(15, 30));
  }
});

test('requests for 5,000 nearly right URLs end in one of the defined errors, and none leaves the machine', async () => {
  const noise = createNoise(SEED + 1);
  const client = createHttpClient({
    allow: parseNetworkAllow(''),
    lookup: async () => [{ address: '10.0.0.1', family: 4 }],
  });
  const codes = new Map<string, number>();
  for (let round = 0; round < 500; round += 1) {
    const batch = Array.from({ length: 10 }, () => {
      const url = `${noise.pick(['http://', 'https://', ''])}${noise.text(URL_PIECES)}`;
      const headers = [[noise.text(HEADER_PIECES, 2), noise.text(HEADER_PIECES, 2)]] as const;
      // A public address would be asked for the page; an aborted request never starts.
      const host = URL.parse(url)?.hostname.replace(/^\[(.*)\]$/, '$1') ?? '';
      const signal = isPublicAddress(host) ? AbortSignal.abort() : undefined;
      return client
        .request({
          url,
          method: 'GET',
          headers,
          // Far longer than a busy machine stands still.
          timeoutMs: 60_000,
          maxBodyBytes: 10,
          ...(signal && { signal }),
        })
        .then(
          () => 'answered',
          (error: unknown) =>
            error instanceof HttpError ? error.code : `not defined: ${String(error)}`,
        );
    });
    for (const code of await Promise.all(batch)) codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  await client.close();
  const defined = ['aborted', 'address_not_allowed', 'invalid_url', 'protocol_error'];
  expect([...codes.keys()].filter((code) => !defined.includes(code))).toEqual([]);
  expect(codes.get('address_not_allowed')).toBeGreaterThan(100);
});

const ANSWER_PIECES = [
  'HTTP/1.1 200 OK\r\n',
  'HTTP/1.0 404 \r\n',
  'HTTP/1.1 302 Found\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/2 200\r\n',
  'content-length: 5\r\n',
  'content-length: -1\r\n',
  'transfer-encoding: chunked\r\n',
  'content-encoding: gzip\r\n',
  'content-encoding: br, br\r\n',
  'location: /x\r\n',
  'location: //\r\n',
  'set-cookie: a=b; Domain=.\r\n',
  'content-type: text/html; charset=utf-16\r\n',
  'connection: upgrade\r\n',
  'upgrade: h2c\r\n',
  'HTTP/1.1 101 Up\r\n',
  '\r\n',
  '\n',
  '5\r\nhello\r\n',
  '0\r\n\r\n',
  'ffffffffff\r\n',
  'hello',
  '\u001f\u008b\u0008',
  'retry-after: 9e9\r\n',
  'x: \u00ff\r\n',
];

const CRAWLS = byLength(500, 1_500);
const BATCH = 20;

test(`crawls of ${CRAWLS} nearly right answers always give a page`, async () => {
  const noise = createNoise(SEED + 2);
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', () => {
      const start = noise.pick([...ANSWER_PIECES.slice(0, 4), '']);
      socket.end(start + noise.text(ANSWER_PIECES, 12), 'latin1');
    });
  });
  await using open = await listen(server);
  const { port } = open;
  // Each answer ends with its connection.
  const limits = { timeoutMs: 60_000, maxBodyBytes: 1_000 };
  await using engine = startHttpEngine({ allow: `127.0.0.1:${port}`, limits });
  const statuses = new Map<number, number>();
  for (let round = 0; round < CRAWLS / BATCH; round += 1) {
    const batch = Array.from({ length: BATCH }, () => engine.crawl(`http://127.0.0.1:${port}/`));
    for (const { cbStatus } of await Promise.all(batch)) {
      statuses.set(cbStatus, (statuses.get(cbStatus) ?? 0) + 1);
    }
  }
  expect(engine.errors).toEqual([]);
  expect(
    [...statuses.keys()].filter((status) => ![200, 520, 521, 522, 523, 599].includes(status)),
  ).toEqual([]);
  // Some of the noise has to be HTTP.
  expect(statuses.get(200)).toBeGreaterThan(CRAWLS / 75);
  expect(statuses.get(599)).toBeGreaterThan(CRAWLS / 30);
});
