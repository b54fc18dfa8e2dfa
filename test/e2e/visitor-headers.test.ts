import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asVisitor, visitorHeaders } from '../../src/engine/http/visitor-headers.ts';
import { createHttpClient } from '../../src/net/create-http-client.ts';
import { parseNetworkAllow } from '../../src/net/network-allow.ts';
import { JAVASCRIPT, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { type Site, startSite } from '../support/site.ts';
import { TLS_FIXTURE } from '../support/tls-fixture.ts';
import { startTlsSite } from '../support/tls-site.ts';

// With CRAWLER_IDENTITY=visitor both engines look the same to a site, as far as headers go.

let site: Site;
let dns: DnsServer;
let visitor: TestApp;
let named: TestApp;
let seen: string[][] = [];

beforeAll(async () => {
  site = await startSite({
    routes: {
      '/page': (request, response) => {
        seen.push(request.rawHeaders);
        response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'a=1' });
        response.end('<p>page</p>');
      },
      '/moved': (_request, response) => response.writeHead(302, { location: '/page' }).end(),
    },
  });
  dns = await startDnsServer({ 'site.test': ['127.0.0.1'] });
  const env = { NETWORK_ALLOW: '127.0.0.1', DNS_SERVERS: dns.address };
  visitor = await startApp({ env: { ...env, CRAWLER_IDENTITY: 'visitor' } });
  named = await startApp({ env });
});

afterAll(async () => {
  for (const each of [visitor, named, dns, site]) await each[Symbol.asyncDispose]();
});

/** Names and values as they arrived, without what belongs to the connection. */
async function headersOf(
  app: TestApp,
  parameters: Readonly<Record<string, string>>,
  url = `${site.url}/page`,
): Promise<readonly (readonly [string, string])[]> {
  seen = [];
  const query = new URLSearchParams({ url, format: 'json', ...parameters });
  const { json } = await app.rest('GET', `/?${query}`);
  expect(json).toMatchObject({ pc_status: 200 });
  const [raw = []] = seen;
  return raw
    .flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ''] as const] : []))
    .filter(([name]) => !/^(host|connection)$/i.test(name));
}

describe('the plain engine sends what the browser sends, in its order and spelling', () => {
  test.each([
    {},
    { device: 'mobile' },
    { device: 'tablet' },
    {
      user_agent:
        'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36',
    },
  ])('with %j', async (parameters: Record<string, string>) => {
    const plain = await headersOf(visitor, { ...parameters, token: NORMAL });
    const browser = await headersOf(visitor, { ...parameters, token: JAVASCRIPT });
    expect(plain).toEqual(browser);
    expect(plain.map(([name]) => name)).toContain('sec-ch-ua');
  });

  test('to an origin that is not secure, which gets fewer', async () => {
    const url = `http://site.test:${site.port}/page`;
    const plain = await headersOf(visitor, { token: NORMAL }, url);
    const browser = await headersOf(visitor, { token: JAVASCRIPT }, url);
    expect(plain).toEqual(browser);
    expect(plain.map(([name]) => name)).toEqual([
      'Upgrade-Insecure-Requests',
      'User-Agent',
      'Accept-Language',
      'Accept',
      'Accept-Encoding',
    ]);
  });

  test('after a redirect, with a cookie', async () => {
    const parameters = { cookies: 'b=2' };
    const url = `${site.url}/moved`;
    const plain = await headersOf(visitor, { ...parameters, token: NORMAL }, url);
    const browser = await headersOf(visitor, { ...parameters, token: JAVASCRIPT }, url);
    expect(plain).toEqual(browser);
    expect(plain.at(-1)).toEqual(['Cookie', 'b=2']);
  });
});

test('the named identity sends no more than before', async () => {
  const plain = await headersOf(named, { token: NORMAL });
  expect(plain.map(([name]) => name)).toEqual([
    'user-agent',
    'accept',
    'accept-language',
    'accept-encoding',
  ]);
});

test('headers of the push replace those of the visitor, and those of a browser with another name stay few', async () => {
  const own = await headersOf(visitor, {
    token: NORMAL,
    request_headers: 'accept:text/plain|x-one:1',
  });
  expect(own).toContainEqual(['Accept', 'text/plain']);
  expect(own.at(-1)).toEqual(['X-One', '1']);
  const user_agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  const firefox = await headersOf(visitor, { token: NORMAL, user_agent });
  expect(firefox.map(([name]) => name).filter((name) => /^sec-/i.test(name))).toEqual([]);
});

test('over HTTP/2 the same headers arrive, in lower case', async () => {
  await using secure = await startTlsSite();
  const client = createHttpClient({
    allow: parseNetworkAllow(secure.host),
    ca: TLS_FIXTURE.cert,
  });
  try {
    const agent =
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/153.0.0.0 Safari/537.36';
    const headers = asVisitor(visitorHeaders(agent, new URL(secure.url)) ?? []);
    const { body } = await client.request({
      url: secure.url,
      method: 'GET',
      headers,
      timeoutMs: 60_000,
      maxBodyBytes: 100_000,
    });
    const answer = JSON.parse(Buffer.from(body).toString());
    expect(answer.httpVersion).toBe('2.0');
    expect(answer.headers).toMatchObject({ 'sec-fetch-mode': 'navigate', 'user-agent': agent });
    expect(Object.keys(answer.headers).filter((name) => !name.startsWith(':'))).toEqual(
      headers.map(([name]) => name.toLowerCase()),
    );
  } finally {
    await client.close();
  }
});
