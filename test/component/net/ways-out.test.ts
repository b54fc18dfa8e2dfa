import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GUARDED } from '../../../src/domain/proxy-pools.ts';
import { createAddressGuard, isPublicAddress } from '../../../src/net/address-guard.ts';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { startFilteringProxy } from '../../../src/net/filtering-proxy.ts';
import type { HttpError } from '../../../src/net/http-client.ts';
import type { Lookup, LookupAnswer } from '../../../src/net/lookup.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen } from '../../support/listen.ts';
import { NOT_PUBLIC } from '../../support/not-public.ts';
import { type Proxy, type ProxyFault, type ProxyOptions, startProxy } from '../../support/proxy.ts';
import { type Site, startSite } from '../../support/site.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';
import { startTlsSite } from '../../support/tls-site.ts';

const KINDS = ['http', 'https', 'socks5'] as const;
const OWNERS = KINDS.flatMap((kind) => [
  { kind, owner: 'the operator' },
  { kind, owner: 'an account' },
]);
const NOTHING = parseNetworkAllow('');
const isIpv6 = (address: string): boolean => address.includes(':');

let stack: AsyncDisposableStack;
let site: Site;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  site = stack.use(await startSite());
});
afterEach(() => stack.disposeAsync());

/**
 * What names lead to but `localhost`, which a proxy has for its certificate. The proxies lead to the
 * site whatever they are asked for.
 */
function answering(...addresses: readonly string[]): Lookup {
  return async (name): Promise<LookupAnswer[]> =>
    (name === 'localhost' ? ['127.0.0.1'] : addresses).map((address) => ({
      address,
      family: isIpv6(address) ? 6 : 4,
    }));
}

function open(lookup: Lookup = answering('93.184.215.14'), proxyTarget?: 'name', allow = NOTHING) {
  const client = createHttpClient({
    allow,
    ca: TLS_FIXTURE.cert,
    lookup,
    ...(proxyTarget === undefined ? {} : { proxyTarget }),
  });
  stack.defer(() => client.close());
  return client;
}

const get = (url: string, proxy: Pick<Proxy, 'url'>) => ({
  url,
  method: 'GET',
  timeoutMs: 60_000,
  maxBodyBytes: 1_000_000,
  proxy: proxy.url,
});

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'answered',
    (error: HttpError) => error.code,
  );
}

/** Why a proxy failed. */
async function causeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'answered',
    ({ code, cause }: HttpError) => `${code}: ${(cause as HttpError | undefined)?.code}`,
  );
}

/** What a page of the browser gets by CONNECT, through its own proxy and the operator's. */
async function connectFromPage(
  host: string,
  upstream: Pick<Proxy, 'url'>,
  lookup: Lookup = answering(host),
  allow = NOTHING,
) {
  await using page = await startFilteringProxy({
    guard: createAddressGuard(allow),
    lookup,
    upstream: upstream.url,
    ca: TLS_FIXTURE.cert,
    maxBytes: 1_000_000,
    maxSentBytes: 1_000_000,
    maxAnswerBytes: 1_000_000,
  });
  page.begin();
  const { username, password } = page.credentials;
  const basic = Buffer.from(`${username}:${password}`).toString('base64');
  const { hostname, port } = new URL(page.url);
  const socket = connect(Number(port), hostname);
  const authority = isIpv6(host) ? `[${host}]:80` : `${host}:80`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nproxy-authorization: Basic ${basic}\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  const [line = ''] = answer.toString().split('\r\n');
  return line;
}

const start = async (options: ProxyOptions): Promise<Proxy> => stack.use(await startProxy(options));

describe.each(KINDS)('through a proxy of the kind %s', (kind) => {
  test('http and https targets are reached, by the address that was judged', async () => {
    const tls = stack.use(await startTlsSite());
    const plain = await start({ kind, target: site.host });
    const secure = await start({ kind, target: tls.host });
    const client = open();
    expect((await client.request(get('http://site.test/page/1', plain))).status).toBe(200);
    expect((await client.request(get('https://site.test/x', secure))).status).toBe(200);
    expect([...plain.asked, ...secure.asked]).toEqual(['93.184.215.14:80', '93.184.215.14:443']);
    const ipv6 = open(answering('2606:2800:21f:cb07:6820:80da:af6b:8b2c'));
    expect((await ipv6.request(get('http://site.test/page/1', plain))).status).toBe(200);
    expect(plain.asked.at(-1)).toBe('[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:80');
  });

  test('a name is passed on only if all of its addresses are public', async () => {
    const proxy = await start({ kind, target: site.host });
    const named = open(undefined, 'name');
    expect((await named.request(get('http://site.test/page/1', proxy))).status).toBe(200);
    expect(proxy.asked).toEqual(['site.test:80']);
    const mixed = open(answering('93.184.215.14', '10.0.0.1'), 'name');
    expect(await codeOf(mixed.request(get('http://mixed.test/', proxy)))).toBe(
      'address_not_allowed',
    );
    expect(proxy.asked).toHaveLength(1);
  });

  test.each<[ProxyFault, string]>([
    ['login', 'proxy_failed'],
    ['refuses', 'proxy_refused'],
  ])('one that %s says so as %s', async (fault, code) => {
    const proxy = await start({ kind, target: site.host, fault: () => fault });
    const client = open();
    expect(await codeOf(client.request(get('http://site.test/', proxy)))).toBe(code);
    expect(site.hits()).toBe(0);
  });

  test('one of an account is not reached at an address that is not public, whatever names it', async () => {
    const proxy = await start({ kind, target: site.host });
    const { port } = new URL(proxy.url);
    const wrong: string[] = [];
    const judge = (address: string, how: string, cause: string): void => {
      if (cause !== 'proxy_failed: address_not_allowed') wrong.push(`${address} ${how}: ${cause}`);
    };
    for (const [address] of NOT_PUBLIC) {
      const lookup = async (name: string) =>
        answering(name === 'site.test' ? '93.184.215.14' : address)(name);
      const named = { url: `${kind}://user:password@proxy.test:${port}/${GUARDED}` };
      judge(
        address,
        'by a name',
        await causeOf(open(lookup).request(get('http://site.test/', named))),
      );
      const line = await connectFromPage('site.test', named, lookup);
      if (!line.includes('502')) wrong.push(`${address} from a page: ${line}`);
      const host = isIpv6(address) ? `[${address}]` : address;
      const spelled = URL.parse(`http://${host}:${port}/`);
      // What no URL can spell, and what a URL spells as a public address.
      if (spelled === null || isPublicAddress(spelled.hostname.replace(/^\[(.*)\]$/, '$1')))
        continue;
      if (!/^[\d.[]/.test(spelled.hostname)) continue;
      const literal = { url: `${kind}://user:password@${spelled.host}/${GUARDED}` };
      judge(address, 'as a URL', await causeOf(open().request(get('http://site.test/', literal))));
    }
    expect(wrong).toEqual([]);
    expect([proxy.connections, site.hits()]).toEqual([0, 0]);
    // The same proxy, where the operator allows it and only there.
    const host = kind === 'https' ? 'localhost' : '127.0.0.1';
    const allow = parseNetworkAllow(`${host}:${port}`);
    const allowed = { url: `${proxy.url}/${GUARDED}` };
    const client = open(undefined, undefined, allow);
    expect((await client.request(get('http://site.test/page/1', allowed))).status).toBe(200);
  });
});

describe.each(OWNERS)('through a proxy of the kind $kind of $owner', ({ kind, owner }) => {
  test('no address is reached that is not public, as a URL, by a name, or from a page', async () => {
    const started = await start({ kind, target: site.host });
    const place = new URL(started.url).host;
    const isOwn = owner === 'an account';
    const allow = isOwn ? parseNetworkAllow(place) : NOTHING;
    const proxy = { ...started, url: started.url + (isOwn ? `/${GUARDED}` : '') };
    const reached: string[] = [];
    for (const [address] of NOT_PUBLIC) {
      const host = isIpv6(address) ? `[${address}]` : address;
      const byName = open(answering(address), undefined, allow);
      const spelled = URL.parse(`http://${host}/`);
      const isOther =
        spelled === null || !/^[\d.[]/.test(spelled.hostname) || isPublicAddress(spelled.hostname);
      const codes = [
        isOther
          ? ''
          : await codeOf(open(undefined, undefined, allow).request(get(spelled.href, proxy))),
        await codeOf(byName.request(get('http://name.test/', proxy))),
      ];
      if (codes.some((code) => !['', 'address_not_allowed', 'name_not_found'].includes(code))) {
        reached.push(`${address}: ${codes.join(' ')}`);
      }
      const line = await connectFromPage('name.test', proxy, answering(address), allow);
      if (!line.includes('502')) reached.push(`${address} from a page: ${line}`);
    }
    expect(reached).toEqual([]);
    expect([started.asked, site.hits()]).toEqual([[], 0]);
    // The page's way is open to public addresses, so each refusal was one of the target.
    const line = await connectFromPage('name.test', proxy, answering('93.184.215.14'), allow);
    expect([line, ...started.asked]).toEqual([expect.stringContaining('200'), '93.184.215.14:80']);
  });
});

test.each<[ProxyFault, readonly string[]]>([
  ['closes', ['proxy_refused']],
  ['redirects', ['proxy_refused', 'proxy_failed']],
  ['floods', ['proxy_failed']],
  ['page', ['proxy_refused']],
  ['hangs up', ['connection_failed']],
])('a proxy that %s gives no page', async (fault, codes) => {
  for (const kind of ['http', 'socks5'] as const) {
    const proxy = await start({ kind, target: site.host, fault: () => fault });
    const code = await codeOf(open().request(get('http://site.test/', proxy)));
    expect(kind === 'http' ? codes : ['proxy_failed']).toContain(code);
    expect(proxy.connections).toBeLessThan(25);
  }
});

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';

test.each<[string, string, string]>([
  ['no', ESTABLISHED, 'answered'],
  ['one', CONTINUE + ESTABLISHED, 'answered'],
  ['two', `${CONTINUE}HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ESTABLISHED}`, 'answered'],
  ['one, before a refusal,', `${CONTINUE}HTTP/1.1 502 No\r\n\r\n`, 'proxy_refused'],
  ['one, before a wrong password,', `${CONTINUE}HTTP/1.1 407 No\r\n\r\n`, 'proxy_failed'],
  ['one, and nothing else,', CONTINUE, 'proxy_refused'],
  ['only such', CONTINUE.repeat(2_000), 'proxy_failed'],
])('%s interim response before the answer to CONNECT', async (_what, answer, code) => {
  const server = createServer((client) => {
    client.on('error', () => client.destroy());
    let asked = 0;
    client.on('data', () => {
      asked += 1;
      if (asked > 1) client.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      else if (answer.endsWith(ESTABLISHED)) client.write(answer);
      else client.end(answer);
    });
  });
  const url = `http://127.0.0.1:${stack.use(await listen(server)).port}`;
  expect(await codeOf(open().request(get('http://site.test/', { url })))).toBe(code);
});

/** A SOCKS5 proxy that answers its greeting and its request with these bytes, and ends then. */
async function startSocks(...answers: readonly (readonly number[])[]): Promise<string> {
  const left = [...answers];
  const server = createServer((client) => {
    client.on('error', () => client.destroy());
    client.on('data', () => {
      const answer = Buffer.from(left.shift() ?? []);
      if (left.length > 0) client.write(answer);
      else client.end(answer);
    });
  });
  return `socks5://127.0.0.1:${stack.use(await listen(server)).port}`;
}

test.each<[string, readonly (readonly number[])[], string]>([
  ['nothing to its greeting', [[]], 'proxy_failed'],
  ['another version to its greeting', [[4, 0]], 'proxy_failed'],
  ['no method that it takes', [[5, 0xff]], 'proxy_failed'],
  ['nothing to its request', [[5, 0], []], 'proxy_refused'],
  [
    'a short reply to its request',
    [
      [5, 0],
      [5, 5, 0, 0],
    ],
    'proxy_refused',
  ],
  [
    'a part of a reply to its request',
    [
      [5, 0],
      [5, 0, 0, 1, 0],
    ],
    'proxy_refused',
  ],
  [
    'another version to its request',
    [
      [5, 0],
      [72, 84, 84, 80],
    ],
    'proxy_failed',
  ],
])('a SOCKS5 proxy that answers %s', async (_what, answers, code) => {
  const url = await startSocks(...answers);
  expect(await codeOf(open().request(get('http://site.test/', { url })))).toBe(code);
});
