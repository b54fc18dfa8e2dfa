import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createAddressGuard } from '../../../src/net/address-guard.ts';
import { LookupError } from '../../../src/net/dns-query.ts';
import type { RefusedConnection } from '../../../src/net/failure-reports.ts';
import { type FilteringProxyDeps, startFilteringProxy } from '../../../src/net/filtering-proxy.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { createResolver } from '../../../src/net/resolver.ts';
import { eventually } from '../../support/eventually.ts';
import { startProxy } from '../../support/proxy.ts';
import { startSite } from '../../support/site.ts';

async function proxyTo(host: string, limits: Partial<FilteringProxyDeps> = {}) {
  const proxy = await startFilteringProxy({
    guard: createAddressGuard(parseNetworkAllow(host)),
    lookup: createResolver(),
    maxBytes: 1_000_000,
    maxSentBytes: 1_000_000,
    maxAnswerBytes: 1_000_000,
    ...limits,
  });
  proxy.begin();
  return proxy;
}

/** Sends those bytes and reads to the end. */
async function exchange(
  proxy: { readonly url: string },
  request: string | Buffer,
): Promise<string> {
  const { hostname, port } = new URL(proxy.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(request);
  return text(socket).catch(() => '');
}

const basic = (username: string, password: string): string =>
  `proxy-authorization: Basic ${Buffer.from(`${username}:${password}`).toString('base64')}\r\n`;

test('answers only clients that know its password, which is another for each', async () => {
  await using site = await startSite();
  await using proxy = await proxyTo(site.host);
  await using other = await proxyTo(site.host);
  const get = `GET ${site.url}/page/1 HTTP/1.1\r\nhost: ${site.host}\r\nconnection: close\r\n`;
  const tunnel = `CONNECT ${site.host} HTTP/1.1\r\nhost: ${site.host}\r\n`;
  const { username, password } = proxy.credentials;
  const wrong = [
    '',
    basic(username, other.credentials.password),
    basic('', ''),
    'proxy-authorization: x\r\n',
  ];
  for (const header of wrong) {
    expect(await exchange(proxy, `${get}${header}\r\n`)).toMatch(/^HTTP\/1\.1 407 /);
    expect(await exchange(proxy, `${tunnel}${header}\r\n`)).toMatch(/^HTTP\/1\.1 407 /);
  }
  expect(site.connections).toBe(0);
  const answer = await exchange(proxy, `${get}${basic(username, password)}\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*Page 1/);
  // The password is for the proxy alone.
  expect(site.seen[0]?.headers['proxy-authorization']).toBeUndefined();
});

test('ends everything when more is sent than may be', async () => {
  await using site = await startSite();
  let cuts = 0;
  await using proxy = await proxyTo(site.host, { maxSentBytes: 1_000 });
  proxy.begin(() => {
    cuts += 1;
  });
  const { username, password } = proxy.credentials;
  const post = (length: number): string =>
    `POST ${site.url}/echo HTTP/1.1\r\nhost: ${site.host}\r\nconnection: close\r\n${basic(username, password)}content-length: ${length}\r\n\r\n${'x'.repeat(length)}`;
  expect(await exchange(proxy, post(800))).toMatch(/^HTTP\/1\.1 200 /);
  expect(proxy.isExhausted).toBe(false);
  expect(await exchange(proxy, post(800))).not.toMatch(/ 200 /);
  expect(proxy.isExhausted).toBe(true);
  expect(cuts).toBe(1);
  // The next crawl starts from zero; between crawls nothing is connected.
  proxy.begin();
  expect(await exchange(proxy, post(800))).toMatch(/^HTTP\/1\.1 200 /);
  proxy.end();
  expect(await exchange(proxy, post(10))).toBe('');
});

test('refuses what may not be reached, and tells whose page wanted it', async () => {
  await using site = await startSite();
  const refused: RefusedConnection[] = [];
  const claimant = { accountId: 'a', crawlerId: 'c' };
  await using proxy = await proxyTo(site.host, {
    lookup: async () => [{ address: '10.0.0.1', family: 4 }],
    claimant,
    onRefused: (each) => refused.push(each),
  });
  const { username, password } = proxy.credentials;
  const tunnel = (to: string): Promise<string> =>
    exchange(proxy, `CONNECT ${to} HTTP/1.1\r\nhost: ${to}\r\n${basic(username, password)}\r\n`);
  const targets = ['10.0.0.1:443', 'inner.test:443', '8.8.8.8:25', '[::1]:443'];
  for (const to of targets) expect(await tunnel(to), to).toMatch(/^HTTP\/1\.1 502 /);
  expect(proxy.failureAt('8.8.8.8:25')).toBe('port_not_allowed');
  expect(refused).toEqual([
    { hostname: '10.0.0.1', port: 443, refusal: 'address_not_allowed', claimant },
    { hostname: 'inner.test', port: 443, refusal: 'address_not_allowed', claimant },
    { hostname: '8.8.8.8', port: 25, refusal: 'port_not_allowed', claimant },
    { hostname: '::1', port: 443, refusal: 'address_not_allowed', claimant },
  ]);
});

test('tells that this process had no socket for a connection of the page', async () => {
  const codes: string[] = [];
  await using proxy = await proxyTo('', {
    lookup: async () => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    },
    onNoSocket: (code) => codes.push(code),
  });
  const { username, password } = proxy.credentials;
  const head = 'CONNECT shop.test:443 HTTP/1.1\r\nhost: shop.test:443\r\n';
  const answer = await exchange(proxy, `${head}${basic(username, password)}\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 502 /);
  expect(proxy.failureAt('shop.test:443')).toBe('no_socket');
  expect(codes).toEqual(['EMFILE']);
});

test("gives the operator's proxy the address that was judged, and names to that of Tor alone", async () => {
  await using site = await startSite();
  await using upstream = await startProxy({ target: site.host });
  const lookup: FilteringProxyDeps['lookup'] = async (name, claimant) => {
    expect(claimant).toEqual({ accountId: 'a' });
    if (name.endsWith('.onion')) throw new LookupError('ENOTFOUND');
    return [
      { address: '10.0.0.1', family: 4 },
      { address: '93.184.215.14', family: 4 },
    ];
  };
  const common = { lookup, upstream: upstream.url, claimant: { accountId: 'a' } };
  await using plain = await proxyTo('', common);
  await using tor = await proxyTo('', { ...common, torProxy: upstream.url });
  const get = (proxy: typeof plain, host: string): Promise<string> => {
    const { username, password } = proxy.credentials;
    const head = `GET http://${host}/page/1 HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n`;
    return exchange(proxy, `${head}${basic(username, password)}\r\n`);
  };
  expect(await get(plain, 'shop.test')).toMatch(/^HTTP\/1\.1 200 [^]*Page 1/);
  expect(site.seen[0]?.headers.host).toBe('shop.test');
  expect(await get(plain, 'hidden.onion')).not.toMatch(/ 200 /);
  expect(await get(tor, 'hidden.onion')).toMatch(/^HTTP\/1\.1 200 /);
  expect(upstream.asked).toEqual(['93.184.215.14:80', 'hidden.onion:80']);
});

type Proxy = Awaited<ReturnType<typeof proxyTo>>;

/** The status of a request through the proxy, over a connection of its own. */
async function send(proxy: Proxy, method: string, url: string): Promise<string> {
  const { username, password } = proxy.credentials;
  const { host } = new URL(url);
  const body = method === 'POST' ? 'content-length: 1\r\n' : '';
  const head = `${method} ${url} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n${body}`;
  const answer = await exchange(
    proxy,
    `${head}${basic(username, password)}\r\n${body === '' ? '' : 'x'}`,
  );
  return answer.split(' ')[1] ?? 'closed';
}

test('uses the connection to a site again, within a crawl and for the next one', async () => {
  await using site = await startSite();
  await using other = await startSite();
  await using proxy = await proxyTo(`${site.host},${other.host}`);
  for (let crawl = 0; crawl < 3; crawl += 1) {
    proxy.begin();
    for (const page of ['/page/1', '/page/2', '/echo']) {
      expect(await send(proxy, 'GET', site.url + page)).toBe('200');
    }
    expect(await send(proxy, 'GET', `${other.url}/page/1`)).toBe('200');
    proxy.end();
  }
  expect([site.connections, other.connections]).toEqual([1, 3]);
  expect(site.seen.at(-1)?.headers['connection']).toBe('keep-alive');
});

test('ends what is under way with its crawl, whatever it is connected to', async () => {
  await using site = await startSite();
  await using proxy = await proxyTo(site.host);
  const slow = send(proxy, 'GET', `${site.url}/page/1?delay=60000`);
  await eventually(() => expect(site.hits()).toBe(1));
  proxy.end();
  expect(await slow).toBe('closed');
  proxy.begin();
  expect(await send(proxy, 'GET', `${site.url}/page/1`)).toBe('200');
  expect(site.connections).toBe(2);
});

test('repeats what met a connection that the site had closed, unless it could have an effect', async () => {
  const used = new Set<unknown>();
  const methods: (string | undefined)[] = [];
  await using site = await startSite({
    routes: {
      '/': ({ method, socket }, response) => {
        methods.push(method);
        if (used.has(socket)) return void socket.destroy();
        used.add(socket);
        response.end('page');
      },
      '/post': ({ method, socket }) => {
        methods.push(method);
        socket.destroy();
      },
    },
  });
  await using proxy = await proxyTo(site.host);
  for (let n = 0; n < 2; n += 1) expect(await send(proxy, 'GET', `${site.url}/`)).toBe('200');
  expect(await send(proxy, 'POST', `${site.url}/post`)).toBe('closed');
  expect(methods).toEqual(['GET', 'GET', 'GET', 'POST']);
});
