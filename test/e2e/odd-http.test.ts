import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser } from '../support/browser-crawls.ts';
import type { OpenServer } from '../support/listen.ts';
import {
  HEADERS_OF_200_KB,
  NO_HTTP,
  ODD_RESPONSES,
  SHOWN,
  startOddSite,
  TWO_LENGTHS,
} from '../support/odd-responses.ts';

// Responses that break rules of HTTP are taken as Chromium takes them.

const NAMES = Object.keys(ODD_RESPONSES);
const RESPONSES = [...Object.values(ODD_RESPONSES), HEADERS_OF_200_KB, TWO_LENGTHS, NO_HTTP];

let app: TestApp;
let site: OpenServer;

beforeAll(async () => {
  site = await startOddSite((request) => {
    const index = Number(/^GET \/(\d+)/.exec(request)?.[1]);
    return RESPONSES[index] ?? NO_HTTP;
  });
  app = await startApp({ env: { NETWORK_ALLOW: '127.0.0.1' } });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const crawl = (token: string, response: Buffer, parameters = {}) =>
  crawlInBrowser(app, `http://127.0.0.1:${site.port}/${RESPONSES.indexOf(response)}`, {
    token,
    ...parameters,
  });

describe.each([
  ['plain', NORMAL],
  ['JavaScript', JAVASCRIPT],
])('with the %s token', (_, token) => {
  test.each(NAMES)('a page with %s is shown', async (name) => {
    const result = await crawl(token, ODD_RESPONSES[name] ?? NO_HTTP);
    expect(result).toMatchObject({ cb_status: 200 });
    expect(result.body).toContain(SHOWN);
  });

  test.each([
    ['what is no HTTP', NO_HTTP],
    ['a response with two lengths', TWO_LENGTHS],
  ])('%s fails', async (_name, response) => {
    const result = await crawl(token, response);
    expect(result).toMatchObject({ original_status: 0, failure: 'protocol_error' });
  });
});

test('a browser takes more headers than the plain engine', async () => {
  expect(await crawl(JAVASCRIPT, HEADERS_OF_200_KB)).toMatchObject({ cb_status: 200 });
  expect(await crawl(NORMAL, HEADERS_OF_200_KB)).toMatchObject({ failure: 'protocol_error' });
});

test.each([
  ['of a page as it is', 'html'],
  ['of a page with all of them', 'json'],
])('headers of 60 KB leave the head of a reply readable: %s', async (_, format) => {
  const index = RESPONSES.indexOf(ODD_RESPONSES['headers of 60 KB'] ?? NO_HTTP);
  const url = `http://127.0.0.1:${site.port}/${index}`;
  const query = new URLSearchParams({ token: NORMAL, url, format, get_headers: 'true' });
  // Node's HTTP client takes 16 KiB of headers by default.
  const reply = await fetch(`${app.url}/?${query}`);
  const text = await reply.text();
  expect(reply.headers.get('original_status')).toBe('200');
  expect(reply.headers.get('original_x_0')).toHaveLength(990);
  expect(reply.headers.get('original_x_30')).toBeNull();
  if (format === 'json') expect(JSON.parse(text).original_x_30).toHaveLength(990);
});

test('headers are repaired for the client that asks for them', async () => {
  const folded = ODD_RESPONSES['a header on two lines'] ?? NO_HTTP;
  const result = await crawl(NORMAL, folded, { get_headers: 'true' });
  expect(result).toMatchObject({ original_x_folded: 'one two' });
});

test.each([
  ['GET', 'a page whose body is cut short is requested once more', 'whole', 2],
  ['POST', 'a post whose response is cut short is sent once', 'shown', 1],
])('%s: %s', async (method, _, text, requests) => {
  const answers = ['a body that is cut short', 'bytes after the body'].map((name) =>
    (ODD_RESPONSES[name] ?? NO_HTTP).toString('latin1'),
  );
  const [cut = '', whole = ''] = answers;
  let received = 0;
  await using other = await startOddSite(() => {
    received += 1;
    return Buffer.from(received === 1 ? cut : whole.replace('shown', 'whole'), 'latin1');
  });
  const query = new URLSearchParams({ token: NORMAL, url: `http://127.0.0.1:${other.port}/` });
  const reply = await app.rest(method, `/?${query}`, method === 'POST' ? { a: 1 } : undefined);
  expect(reply.text).toContain(`<p>${text}</p>`);
  expect(received).toBe(requests);
});
