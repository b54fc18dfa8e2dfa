import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  brotliCompressSync,
  constants,
  createZstdCompress,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createHttpClient, type HttpClientDeps } from '../../../src/net/create-http-client.ts';
import type { RefusedConnection } from '../../../src/net/failure-reports.ts';
import { type HttpClient, HttpError, type HttpRequest } from '../../../src/net/http-client.ts';
import type { Lookup, LookupAnswer } from '../../../src/net/lookup.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { startProxy } from '../../support/proxy.ts';
import { type Site, startSite } from '../../support/site.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';
import { startTlsSite } from '../../support/tls-site.ts';

const TEXT = 'Grüße, 世界! '.repeat(2_000);

let stack: AsyncDisposableStack;
let site: Site;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  site = stack.use(
    await startSite({
      routes: {
        '/encoded': (_request, response, url) => {
          const encoding = url.searchParams.get('encoding') ?? '';
          response.setHeader('content-encoding', encoding);
          response.end(encode(url.searchParams.get('how') ?? encoding));
        },
        '/wide-zstd': (_request, response) => {
          response.setHeader('content-encoding', 'zstd');
          const params = { [constants.ZSTD_c_windowLog]: 25 };
          const compressor = createZstdCompress({ params });
          compressor.pipe(response);
          // In two writes, because a frame of known length gets a window no larger than that.
          compressor.write('a');
          compressor.end('b');
        },
      },
    }),
  );
});

afterEach(async () => {
  await stack.disposeAsync();
});

function encode(how: string): Uint8Array {
  const steps: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
    gzip: (bytes) => gzipSync(bytes),
    'x-gzip': (bytes) => gzipSync(bytes),
    deflate: (bytes) => deflateSync(bytes),
    raw: (bytes) => deflateRawSync(bytes),
    br: (bytes) => brotliCompressSync(bytes),
    zstd: (bytes) => zstdCompressSync(bytes),
  };
  return how
    .toLowerCase()
    .split(/\s*,\s*/)
    .reduce<Uint8Array>((bytes, step) => steps[step]?.(bytes) ?? bytes, Buffer.from(TEXT));
}

function open(deps: Partial<HttpClientDeps> = {}): HttpClient {
  const client = createHttpClient({ allow: parseNetworkAllow(site.host), ...deps });
  stack.defer(() => client.close());
  return client;
}

function get(url: string, more: Partial<HttpRequest> = {}): HttpRequest {
  return { url, method: 'GET', timeoutMs: 60_000, maxBodyBytes: 1_000_000, ...more };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof HttpError)) throw new Error(`no HttpError but ${String(error)}`);
  return error.code;
}

describe('addresses', () => {
  test.each([
    ['http://127.0.0.1/'],
    ['http://127.1/'],
    ['http://2130706433/'],
    ['http://0x7f000001/'],
    ['http://0x7f.1/'],
    ['http://017700000001/'],
    ['http://127.0.0.1./'],
    ['http://１２７.０.０.１/'],
    ['http://0/'],
    ['http://[::1]/'],
    ['http://[::ffff:127.0.0.1]/'],
    ['http://[::ffff:7f00:1]/'],
    ['http://[64:ff9b::7f00:1]/'],
    ['http://[2002:7f00:1::]/'],
    ['http://[::]/'],
    ['https://169.254.169.254/latest/meta-data/'],
    ['http://user:password@10.0.0.1:8080/'],
    ['http://localhost/'],
  ])('%s is refused', async (url) => {
    expect(await codeOf(open().request(get(url)))).toBe('address_not_allowed');
  });

  test('the port counts: the same address with another than the allowed port is refused', async () => {
    expect(await codeOf(open().request(get('http://127.0.0.1:1/')))).toBe('address_not_allowed');
    expect((await open().request(get(`${site.url}/page/1`))).status).toBe(200);
  });

  test.each([
    ['ftp://example.com/'],
    ['file:///etc/passwd'],
    ['data:,x'],
    ['//x'],
    ['http://'],
    [''],
  ])('%j is no URL for it', async (url) => {
    expect(await codeOf(open().request(get(url)))).toBe('invalid_url');
  });

  test('a name whose answers are all private is refused, and nothing connects', async () => {
    const client = open({
      lookup: async () => [{ address: '127.0.0.1', family: 4 }],
      allow: parseNetworkAllow(''),
    });
    expect(await codeOf(client.request(get(`http://evil.test:${site.port}/`)))).toBe(
      'address_not_allowed',
    );
    expect(site.connections).toBe(0);
  });

  test('of mixed answers only the permitted are connected to', async () => {
    const mixed: LookupAnswer[] = [
      { address: '127.0.0.2', family: 4 },
      { address: '10.0.0.1', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];
    let leaked = 0;
    const forbidden = createServer((socket) => {
      leaked += 1;
      socket.destroy();
    });
    forbidden.listen(site.port, '127.0.0.2');
    stack.defer(() => void forbidden.close());
    await once(forbidden, 'listening');
    const client = open({ lookup: async () => mixed });
    const answer = await client.request(get(`http://mixed.test:${site.port}/page/1`));
    expect([answer.status, leaked]).toEqual([200, 0]);
  });

  test('an answer that changes between look-ups gains nothing', async () => {
    await using other = await startSite();
    let asked = 0;
    // Allowed at first, forbidden from the second look-up on, as in DNS rebinding.
    const lookup = async (): Promise<LookupAnswer[]> => {
      asked += 1;
      return [{ address: asked === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }];
    };
    const client = open({ lookup, allow: parseNetworkAllow(`127.0.0.1:${other.port}`) });
    const url = `http://rebind.test:${other.port}/page/1`;
    expect((await client.request(get(url))).status).toBe(200);
    expect(asked).toBe(1);
    // The kept connection goes to the address that was judged; a new one is judged anew.
    expect((await client.request(get(url))).status).toBe(200);
    const second = client.request(get(`http://rebind.test:${other.port}/delay/200`));
    expect(await codeOf(client.request(get(url)))).toBe('address_not_allowed');
    expect((await second).status).toBe(200);
    expect(asked).toBe(2);
    expect(other.connections).toBe(1);
  });

  test('a refusal is told with whose it was, and to which host', async () => {
    const refused: RefusedConnection[] = [];
    const claimant = { accountId: 'a', crawlerId: 'c' };
    const client = open({ onRefused: (each) => refused.push(each) });
    await codeOf(client.request(get('http://10.0.0.1:8080/secret?x', { claimant })));
    await codeOf(client.request(get('http://8.8.8.8:25/')));
    await client.request(get(site.url, { claimant }));
    expect(refused).toEqual([
      { hostname: '10.0.0.1', port: 8080, refusal: 'address_not_allowed', claimant },
      { hostname: '8.8.8.8', port: 25, refusal: 'port_not_allowed', claimant: undefined },
    ]);
  });

  test('names are looked up on behalf of who asks', async () => {
    const seen: unknown[] = [];
    const lookup: Lookup = async (_name, claimant) => {
      seen.push(claimant);
      return [{ address: '127.0.0.1', family: 4 }];
    };
    const client = open({ lookup, allow: parseNetworkAllow('127.0.0.1') });
    const first = { accountId: 'a', crawlerId: 'c' };
    const requests = [first, { accountId: 'b' }].map((claimant, n) =>
      client.request(get(`http://${n}.test:${site.port}/delay/50`, { claimant })),
    );
    await Promise.all(requests);
    expect(seen).toEqual([first, { accountId: 'b' }]);
  });

  test.each([
    ['that does not exist', 'ENOTFOUND', 'name_not_found'],
    ['that the name servers say nothing of', 'EAI_AGAIN', 'name_lookup_failed'],
  ])('a name %s', async (_what, code, failure) => {
    const lookup = async (): Promise<never> => {
      throw Object.assign(new Error('getaddrinfo'), { code });
    };
    expect(await codeOf(open({ lookup }).request(get('http://no.test/')))).toBe(failure);
  });

  test('nobody listens', async () => {
    const client = open({ allow: parseNetworkAllow('127.0.0.1') });
    await using gone = await startSite();
    const { url } = gone;
    await gone[Symbol.asyncDispose]();
    expect(await codeOf(client.request(get(url)))).toBe('connection_failed');
  });
});

describe('content encodings', () => {
  test.each([
    ['gzip', 'gzip'],
    ['x-gzip', 'x-gzip'],
    ['GZIP', 'gzip'],
    ['deflate', 'deflate'],
    ['deflate', 'raw'],
    ['br', 'br'],
    ['zstd', 'zstd'],
    ['gzip, br', 'gzip, br'],
    ['identity', 'none'],
    ['utf-8', 'none'],
    ['identity, gzip', 'gzip'],
  ])('%s (sent as %s)', async (encoding, how) => {
    const path = `/encoded?encoding=${encodeURIComponent(encoding)}&how=${encodeURIComponent(how)}`;
    const { body } = await open().request(get(site.url + path));
    expect(Buffer.from(body).toString()).toBe(TEXT);
  });

  test('more than two are refused for good', async () => {
    const path = `/encoded?encoding=${encodeURIComponent('deflate, gzip, zstd')}`;
    expect(await codeOf(open().request(get(site.url + path)))).toBe('too_many_encodings');
  });

  test('a zstd window beyond 8 MiB is refused', async () => {
    expect(await codeOf(open().request(get(`${site.url}/wide-zstd`)))).toBe('decoding_failed');
  });
});

describe('limits', () => {
  test('a body of exactly the limit passes, one more byte does not', async () => {
    const { length } = (await open().request(get(`${site.url}/page/1?size=5000`))).body;
    const exact = get(`${site.url}/page/1?size=5000`, { maxBodyBytes: length });
    expect((await open().request(exact)).body.length).toBe(length);
    expect(await codeOf(open().request({ ...exact, maxBodyBytes: length - 1 }))).toBe(
      'body_too_large',
    );
  });

  test('the time for headers counts from the end of the request', async () => {
    const client = open();
    await client.request(get(`${site.url}/page/1`));
    // Longer than the test may take.
    const timeoutMs = 3_600_000;
    const late = get(`${site.url}/hang`, { headersTimeoutMs: 150, timeoutMs });
    const startedAt = performance.now();
    expect(await codeOf(client.request(late))).toBe('timeout');
    expect(performance.now() - startedAt).toBeGreaterThan(145);
    const slow = get(`${site.url}/delay/300`, { headersTimeoutMs: timeoutMs, timeoutMs });
    expect((await client.request(slow)).status).toBe(200);
  });

  test('an answer that came in time counts although the process was busy when its time was over', async () => {
    await using busy = await startSite({
      routes: {
        '/': (_request, response) => {
          response.end('in time');
          // The bytes are with the operating system, and nobody looks at them until the time is over.
          const until = performance.now() + 600;
          while (performance.now() < until);
        },
      },
    });
    const client = open({ allow: parseNetworkAllow(busy.host) });
    const answer = await client.request(get(busy.url, { headersTimeoutMs: 500 }));
    expect(Buffer.from(answer.body).toString()).toBe('in time');
  });

  test('the whole exchange', async () => {
    const client = open();
    expect(await codeOf(client.request(get(`${site.url}/hang`, { timeoutMs: 100 })))).toBe(
      'timeout',
    );
    expect(
      await codeOf(client.request(get(`${site.url}/hostile/slow-body`, { timeoutMs: 200 }))),
    ).toBe('timeout');
    await eventually(() => expect(site.concurrent).toBe(0));
  });

  test('the connection', async () => {
    // The look-up never answers.
    const client = open({ lookup: () => new Promise(() => undefined) });
    const request = get('http://slow.test/', { connectTimeoutMs: 80 });
    expect(await codeOf(client.request(request))).toBe('connect_timeout');
    expect(await codeOf(client.request(get('http://slow.test/', { timeoutMs: 80 })))).toBe(
      'connect_timeout',
    );
  });

  test('an abort, before and during', async () => {
    const client = open();
    const reason = new Error('enough');
    await expect(
      client.request(get(`${site.url}/hang`, { signal: AbortSignal.abort(reason) })),
    ).rejects.toMatchObject({ code: 'aborted', cause: reason });
    expect(site.hits()).toBe(0);
    const controller = new AbortController();
    const work = client.request(get(`${site.url}/hang`, { signal: controller.signal }));
    const code = codeOf(work);
    await eventually(() => expect(site.concurrent).toBe(1));
    controller.abort(reason);
    expect(await code).toBe('aborted');
    await eventually(() => expect(site.concurrent).toBe(0));
  });

  test.each([
    { over: 'a new connection', before: 0, aborts: false },
    { over: 'a new connection', before: 0, aborts: true },
    { over: 'one that was used before', before: 1, aborts: false },
    { over: 'one that was used before', before: 1, aborts: true },
  ])(
    'a request over $over is written when the client is ready, unless it was aborted before: $aborts',
    async ({ before, aborts }) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      let isHeld = false;
      let asked = 0;
      const client = open({
        ready() {
          asked += 1;
          return isHeld ? promise : undefined;
        },
      });
      for (let n = 0; n < before; n += 1) await client.request(get(`${site.url}/page/${n}`));
      const controller = new AbortController();
      const { signal } = controller;
      const end = client.request(get(`${site.url}/page/9`, { signal })).then(
        ({ status }) => status,
        (error: unknown) => (error instanceof HttpError ? error.code : error),
      );
      // After the request was handed over, and before it is written.
      isHeld = true;
      await eventually(() => expect(asked).toBe(before + 1));
      expect(site.hits()).toBe(before);
      if (aborts) controller.abort();
      isHeld = false;
      resolve();
      expect(await end).toBe(aborts ? 'aborted' : 200);
      expect(site.hits()).toBe(before + (aborts ? 0 : 1));
      expect(site.connections).toBe(1);
    },
  );

  test('closing ends what is under way', async () => {
    const client = open();
    const code = codeOf(client.request(get(`${site.url}/hang`)));
    await eventually(() => expect(site.concurrent).toBe(1));
    await client.close();
    expect(await code).toBe('aborted');
    await eventually(() => expect(site.concurrent).toBe(0));
  });
});

describe('requests', () => {
  test('carry method, headers, body and the credentials of the URL', async () => {
    const answer = await open().request({
      ...get(`${site.url.replace('//', '//us%65r:p%40ss@')}/echo?q=1`),
      method: 'POST',
      headers: [['X-Own', 'yes']],
      body: Buffer.from('hello'),
    });
    expect(JSON.parse(Buffer.from(answer.body).toString())).toMatchObject({
      method: 'POST',
      path: '/echo?q=1',
      body: 'hello',
      headers: {
        'x-own': 'yes',
        authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}`,
      },
    });
  });

  test('may have a body of many pieces', async () => {
    const body = Buffer.alloc(700_001, 'x');
    const request = { ...get(`${site.url}/echo`), method: 'PUT', body, headersTimeoutMs: 2_000 };
    const answer = await open().request(request);
    const seen = JSON.parse(Buffer.from(answer.body).toString()) as {
      body: string;
      headers: Record<string, string>;
    };
    expect(seen.body.length).toBe(body.length);
    expect(seen.headers['content-length']).toBe('700001');
  });

  test('that cannot be sent fail without a throw of another kind', async () => {
    const bad = [
      ['x-a', 'line\nbreak'],
      ['transfer-encoding', 'chunked'],
      ['bad name', 'x'],
    ] as const;
    for (const header of bad) {
      const code = await codeOf(open().request(get(site.url, { headers: [header] })));
      expect(code).toBe('protocol_error');
    }
  });

  test('use a connection again, also after only the headers were wanted', async () => {
    const client = open();
    for (let n = 0; n < 5; n += 1) await client.request(get(`${site.url}/page/${n}`));
    expect(site.connections).toBe(1);
    for (let n = 0; n < 10; n += 1) {
      await client.request(get(`${site.url}/page/${n}`, { headersOnly: true }));
      await eventually(() => expect(site.concurrent).toBe(0));
    }
    // The next request may come before the rest of the last answer.
    expect(site.connections).toBeLessThanOrEqual(2);
  });

  test('on a kept connection that the server closes are sent again, when that is harmless', async () => {
    let connections = 0;
    const fickle = createServer((socket) => {
      connections += 1;
      let requests = 0;
      socket.on('error', () => undefined);
      socket.on('data', () => {
        requests += 1;
        if (requests > 1) socket.destroy();
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      });
    });
    const url = `http://127.0.0.1:${stack.use(await listen(fickle)).port}/`;
    const client = open({ allow: parseNetworkAllow('127.0.0.1') });
    for (let n = 0; n < 3; n += 1) expect((await client.request(get(url))).status).toBe(200);
    expect(connections).toBe(3);
    await using proxy = await startProxy({ target: new URL(url).host });
    const through = get(url, { proxy: proxy.url });
    for (let n = 0; n < 3; n += 1) expect((await client.request(through)).status).toBe(200);
    expect(proxy.asked).toHaveLength(3);
    connections = 3;
    const post = { ...get(url), method: 'POST', body: Buffer.from('once') };
    expect(await codeOf(client.request(post))).toBe('connection_failed');
    expect(connections).toBe(3);
  });

  test('for headers only do not wait for an endless body, nor read it', async () => {
    const answer = await open().request(
      get(`${site.url}/hostile/endless-body`, { headersOnly: true }),
    );
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
    await eventually(() => expect(site.concurrent).toBe(0));
  });

  test('keep connections of few origins only', async () => {
    const sites = await Promise.all([startSite(), startSite(), startSite()]);
    for (const each of sites) stack.use(each);
    const client = open({ allow: parseNetworkAllow('127.0.0.1'), maxOrigins: 2 });
    for (const each of [...sites, ...sites]) await client.request(get(each.url));
    // The third origin pushed the first out, and so on.
    expect(sites.map((each) => each.connections)).toEqual([2, 2, 2]);
  });

  test('keep the order and repetition of headers', async () => {
    await using repeating = await startSite({
      routes: {
        '/': (_request, response) => {
          response.writeHead(200, ['Set-Cookie', 'a=1', 'X-B', 'é', 'set-cookie', 'c=2']).end();
        },
      },
    });
    const client = open({ allow: parseNetworkAllow(repeating.host) });
    const { headers } = await client.request(get(repeating.url));
    expect(headers.filter(([name]) => name === 'set-cookie' || name === 'x-b')).toEqual([
      ['set-cookie', 'a=1'],
      ['x-b', 'é'],
      ['set-cookie', 'c=2'],
    ]);
  });
});

describe('TLS and HTTP/2', () => {
  test('HTTP/2 is spoken when the server does, on one connection', async () => {
    await using tls = await startTlsSite();
    const client = open({ allow: parseNetworkAllow(tls.host), ca: TLS_FIXTURE.cert });
    const bodies = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const request = { ...get(`${tls.url}/${n}`), method: 'POST', body: Buffer.from(`${n}`) };
        const answer = await client.request(request);
        expect(answer.headers.filter(([name]) => name === 'set-cookie')).toHaveLength(2);
        return JSON.parse(Buffer.from(answer.body).toString()) as Record<string, string>;
      }),
    );
    expect(bodies.map(({ httpVersion, body }) => [httpVersion, body])).toEqual(
      Array.from({ length: 10 }, (_, n) => ['2.0', String(n)]),
    );
    expect(tls.connections).toBe(1);
  });

  test('a request that cannot be sent does not spoil its origin for the next', async () => {
    await using tls = await startTlsSite();
    const client = open({ allow: parseNetworkAllow(tls.host), ca: TLS_FIXTURE.cert });
    const headers = [['x-a', 'line\nbreak']] as const;
    expect(await codeOf(client.request(get(tls.url, { headers })))).toBe('protocol_error');
    expect((await client.request(get(tls.url))).status).toBe(200);
  });

  test.each([true, false])(
    'long bodies that arrive at once stay whole, HTTP/2: %s',
    async (http2) => {
      await using tls = await startTlsSite({ http2 });
      const client = open({ allow: parseNetworkAllow(tls.host), ca: TLS_FIXTURE.cert });
      const texts = Array.from({ length: 6 }, (_, n) => `${n}`.repeat(700_000));
      const bodies = await Promise.all(
        texts.map(async (text) => {
          const body = Buffer.from(text);
          const more = { method: 'POST', body, timeoutMs: 60_000 } as const;
          const answer = await client.request(get(tls.url, more));
          return JSON.parse(Buffer.from(answer.body).toString()) as Record<string, string>;
        }),
      );
      expect(bodies.map(({ body }, n) => body === texts[n])).toEqual(texts.map(() => true));
      expect(bodies[0]?.httpVersion).toBe(http2 ? '2.0' : '1.1');
    },
  );

  test('a body over HTTP/2 that ends while it waits for memory is whole', async () => {
    const server = createSecureServer(TLS_FIXTURE, (request, response) => {
      const length = Number(request.url.slice(1));
      response.writeHead(200, { 'content-length': length }).end(Buffer.alloc(length, 'a'));
    });
    await using tls = await listen(server);
    const client = open({ allow: parseNetworkAllow('127.0.0.1'), ca: TLS_FIXTURE.cert });
    for (const length of [65_537, 66_000, 75_000, 81_000, 200_000]) {
      const room = {
        bytes: 65_536,
        async grow(bytes: number) {
          // As long as the service takes to answer a crawl thread.
          await delay(20);
          room.bytes = bytes;
        },
        reset: () => undefined,
      };
      const url = `https://127.0.0.1:${tls.port}/${length}`;
      const { body } = await client.request(get(url, { room }));
      expect(Buffer.from(body).equals(Buffer.alloc(length, 'a'))).toBe(true);
    }
  });

  test('HTTP/1.1 otherwise', async () => {
    await using tls = await startTlsSite({ http2: false });
    const client = open({ allow: parseNetworkAllow(tls.host), ca: TLS_FIXTURE.cert });
    const { body } = await client.request(get(tls.url));
    expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({ httpVersion: '1.1' });
  });

  test('a further connection resumes the session, whatever was collected in between', async () => {
    await using tls = await startTlsSite({ http2: false, closes: true });
    const client = open({ allow: parseNetworkAllow(tls.host), ca: TLS_FIXTURE.cert });
    for (let n = 0; n < 3; n += 1) {
      await client.request(get(tls.url));
      await collectGarbage();
    }
    expect([tls.connections, tls.resumed]).toEqual([3, 2]);
  });

  test('a certificate nobody vouches for, one for another name, and no TLS at all', async () => {
    await using tls = await startTlsSite();
    const allow = parseNetworkAllow('127.0.0.1');
    expect(await codeOf(open({ allow }).request(get(tls.url)))).toBe('tls_failed');
    const lookup = async (): Promise<LookupAnswer[]> => [{ address: '127.0.0.1', family: 4 }];
    const client = open({ allow, lookup, ca: TLS_FIXTURE.cert });
    expect(await codeOf(client.request(get(`https://other.test:${tls.port}/`)))).toBe('tls_failed');
    expect((await client.request(get(`https://site.test:${tls.port}/`))).status).toBe(200);
    const plain = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const { port } = stack.use(await listen(plain));
    expect(await codeOf(client.request(get(`https://127.0.0.1:${port}/`)))).toBe('tls_failed');
  });
});

describe('proxies', () => {
  const publicName = async (): Promise<LookupAnswer[]> => [{ address: '93.184.215.14', family: 4 }];

  test('http and https targets, with the credentials of the proxy URL', async () => {
    await using plain = await startProxy({ target: site.host });
    const client = open({ lookup: publicName, allow: parseNetworkAllow(''), ca: TLS_FIXTURE.cert });
    const page = get('http://site.test/page/7', { proxy: plain.url });
    expect((await client.request(page)).status).toBe(200);
    await using tls = await startTlsSite();
    await using secure = await startProxy({ target: tls.host });
    const secured = get('https://site.test/x', { proxy: secure.url });
    const answer = await client.request(secured);
    expect(JSON.parse(Buffer.from(answer.body).toString())).toMatchObject({ url: '/x' });
    // The address that was judged; the name is told to the target only, in Host and TLS.
    expect([...plain.asked, ...secure.asked]).toEqual(['93.184.215.14:80', '93.184.215.14:443']);
    expect(site.seen.at(-1)?.headers.host).toBe('site.test');
  });

  test('a proxy that takes names only is given them when all their addresses are public', async () => {
    await using proxy = await startProxy({ target: site.host });
    const client = open({ lookup: publicName, allow: parseNetworkAllow(''), proxyTarget: 'name' });
    const { status } = await client.request(get('http://site.test/', { proxy: proxy.url }));
    expect([status, proxy.asked]).toEqual([200, ['site.test:80']]);
    const lookup = async (): Promise<LookupAnswer[]> => [
      { address: '93.184.215.14', family: 4 },
      { address: '10.0.0.1', family: 4 },
    ];
    const mixed = open({ lookup, allow: parseNetworkAllow(''), proxyTarget: 'name' });
    const code = await codeOf(mixed.request(get('http://mixed.test/', { proxy: proxy.url })));
    expect([code, proxy.asked.length]).toEqual(['address_not_allowed', 1]);
  });

  test('a private target is refused before the proxy is asked, and of mixed answers only the public are', async () => {
    await using proxy = await startProxy({ target: site.host });
    const lookup = async (): Promise<LookupAnswer[]> => [
      { address: '10.0.0.1', family: 4 },
      { address: '93.184.215.14', family: 4 },
    ];
    const client = open({ lookup, allow: parseNetworkAllow('') });
    for (const url of ['http://10.0.0.1/', 'http://[::1]/']) {
      expect(await codeOf(client.request(get(url, { proxy: proxy.url })))).toBe(
        'address_not_allowed',
      );
    }
    expect(proxy.asked).toEqual([]);
    const mixed = await client.request(get('http://mixed.test/', { proxy: proxy.url }));
    expect([mixed.status, proxy.asked]).toEqual([200, ['93.184.215.14:80']]);
  });

  test('an answer that changes after it was judged gains nothing', async () => {
    await using proxy = await startProxy({ target: site.host });
    let asked = 0;
    const lookup = async (): Promise<LookupAnswer[]> => {
      asked += 1;
      return [{ address: asked === 1 ? '8.8.4.4' : '127.0.0.1', family: 4 }];
    };
    const client = open({ lookup, allow: parseNetworkAllow('') });
    const url = 'http://rebind.test/page/1';
    expect((await client.request(get(url, { proxy: proxy.url }))).status).toBe(200);
    expect(proxy.asked).toEqual(['8.8.4.4:80']);
  });

  test.each([['http://site.test/'], ['https://site.test/']])(
    'a proxy that refuses %s',
    async (url) => {
      await using proxy = await startProxy({ target: site.host, refuseWith: 502 });
      const client = open({ lookup: publicName });
      const noPassword = proxy.url.replace('user:password@', '');
      expect(await codeOf(client.request(get(url, { proxy: proxy.url })))).toBe('proxy_refused');
      expect(await codeOf(client.request(get(url, { proxy: noPassword })))).toBe('proxy_failed');
      expect(await codeOf(client.request(get(url, { proxy: 'http://127.0.0.1:1' })))).toBe(
        'proxy_failed',
      );
      expect(await codeOf(client.request(get(url, { proxy: 'nonsense' })))).toBe('proxy_failed');
    },
  );
});
