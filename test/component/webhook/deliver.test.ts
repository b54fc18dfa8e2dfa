import { createHmac } from 'node:crypto';
import { createServer } from 'node:net';
import { performance } from 'node:perf_hooks';
import * as fc from 'fast-check';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import { parseCallbackHeaders } from '../../../src/domain/callback-headers.ts';
import { systemClock } from '../../../src/domain/clock.ts';
import type { Delivery } from '../../../src/domain/delivery.ts';
import { createWebhookSecret, rotateSecrets } from '../../../src/domain/webhook-signature.ts';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import type { HttpRequest } from '../../../src/net/http-client.ts';
import { httpError } from '../../../src/net/http-failures.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { createWebhook, type WebhookDeps } from '../../../src/webhook/create-webhook.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { silentLogger } from '../../support/loggers.ts';
import { type ReceiverAnswer, startReceiver } from '../../support/receiver.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { deliveryOf, webhookCrawler } from '../../support/webhook-fixtures.ts';

const never = new AbortController().signal;

function startWebhook(allow: string, deps: Partial<WebhookDeps> = {}) {
  const client = createHttpClient({ allow: parseNetworkAllow(allow) });
  const webhook = createWebhook({
    client,
    clock: systemClock,
    ackTimeoutMs: 60_000,
    botName: 'Queued Crawler',
    uncompressedHosts: [],
    logger: silentLogger,
    ...deps,
  });
  return { ...webhook, [Symbol.asyncDispose]: () => client.close() };
}

async function delivered(delivery: Delivery, crawler: Parameters<typeof webhookCrawler>[0] = {}) {
  await using receiver = await startReceiver();
  await using webhook = startWebhook(receiver.host);
  const by = webhookCrawler({ callbackUrl: `${receiver.url}?token=t`, ...crawler });
  const result = await webhook.deliver(by, delivery, never);
  expect(result).toMatchObject({ acknowledged: true, log: { status: 200, error: '' } });
  const [post] = receiver.deliveries;
  if (post === undefined) throw new Error('nothing arrived');
  return post;
}

describe('what is sent', () => {
  test('every header in the spelling of the documentation', async () => {
    const post = await delivered(
      deliveryOf('<p>日本語</p>', { cbStatus: 599, originalStatus: 502 }),
    );
    expect(post.headerList).toEqual(
      expect.arrayContaining([
        ['cb_status', '599'],
        ['CB-Status', '599'],
        ['pc_status', '599'],
        ['PC-Status', '599'],
        ['original_status', '502'],
        ['Original-Status', '502'],
        ['rid', '69f0c0de0123456789abcdef'],
        ['url', 'https://example.com/page'],
        ['Content-Type', 'text/plain'],
        ['Content-Encoding', 'gzip'],
        ['User-Agent', 'Queued Crawler Delivery Bot 1.0'],
      ]),
    );
    expect(post.path).toBe('/hook?token=t');
    expect(post.text).toBe('<p>日本語</p>');
    expect(post.headers['content-length']).toBe(String(post.rawBody.length));
  });

  test('the bytes of the record unchanged, many of them too', async () => {
    const delivery = deliveryOf(
      Array.from({ length: 50_000 }, (_, at) => (at * 2_654_435_761).toString(36)).join(' '),
    );
    expect(delivery.body.byteLength).toBeGreaterThan(150_000);
    expect((await delivered(delivery)).rawBody.equals(delivery.body)).toBe(true);
  });

  test('a queue timeout: cb_status 699 and HTTP status 504', async () => {
    const post = await delivered(deliveryOf('', { cbStatus: 699, originalStatus: 504 }));
    expect(post.headers).toMatchObject({ cb_status: '699', original_status: '504' });
    expect(post.text).toBe('');
  });

  test('callback_headers, whatever was accepted', async () => {
    await using receiver = await startReceiver();
    await using webhook = startWebhook(receiver.host);
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const name = fc.stringMatching(/^X-[!#$%&'*+.^_`~0-9A-Za-z-]{1,20}$/);
    const value = fc.stringMatching(
      /^([!-{}~\xa1-\xff]([\t -{}~\xa0-\xff]{0,20}[!-{}~\xa1-\xff])?)?$/,
    );
    for (const [at, pair] of fc.sample(fc.tuple(name, value), 60).entries()) {
      const callbackHeaders = parseCallbackHeaders(pair.join('|'));
      expect(callbackHeaders).toEqual([pair]);
      const { log } = await webhook.deliver(crawler, deliveryOf('x', { callbackHeaders }), never);
      expect(log.error).toBe('');
      expect(receiver.deliveries[at]?.headerList).toContainEqual(pair);
    }
  });

  test.each<[why: string, url: string, sent: string]>([
    ['beyond ASCII', 'https://example.com/ü?q=日', 'https://example.com/%C3%BC?q=%E6%97%A5'],
    ['a line break', 'https://example.com/\r\nX-Evil: 1', 'https://example.com/%0D%0AX-Evil:%201'],
    ['a lone surrogate', 'https://example.com/\ud800', 'https://example.com/%EF%BF%BD'],
  ])('a url header that is safe: %s', async (_why, url, sent) => {
    const post = await delivered(deliveryOf('x', { url }));
    expect(post.headers['url']).toBe(sent);
    expect(post.headers['x-evil']).toBeUndefined();
  });

  test('details that a header can carry and that pose as nothing else', async () => {
    const post = await delivered(
      deliveryOf('x', {
        details: {
          screenshotUrl: 'https://q.example/screenshots?id=1',
          originalHeaders: {
            server: 'nginx',
            title: 'naïve\n',
            status: '999',
            'bad name': 'x',
            long: 'x'.repeat(20_000),
            last: 'still there',
          },
        },
      }),
    );
    expect(post.headers).toMatchObject({
      screenshot_url: 'https://q.example/screenshots?id=1',
      original_server: 'nginx',
      original_title: 'na%C3%AFve',
      original_status: '200',
      original_last: 'still there',
    });
    expect(Object.keys(post.headers).filter((name) => name.includes('bad'))).toEqual([]);
    expect(post.headers['original_long']).toBeUndefined();
  });

  test('facts of the crawl come before headers of the target when there is little room', async () => {
    const post = await delivered(
      deliveryOf('x', {
        details: {
          originalHeaders: Object.fromEntries(
            Array.from({ length: 200 }, (_, at) => [`x${at}`, 'x'.repeat(100)]),
          ),
          failure: 'timeout',
          screenshotUrl: 'https://q.example/screenshots?id=1',
        },
      }),
    );
    expect(post.headers).toMatchObject({
      failure: 'timeout',
      screenshot_url: 'https://q.example/screenshots?id=1',
    });
    expect(post.headers['original_x199']).toBeUndefined();
  });

  test('the fullest head is within what node takes by default', async () => {
    const post = await delivered(
      deliveryOf('x', {
        url: `https://example.com/${'u'.repeat(8_000)}`,
        callbackHeaders: parseCallbackHeaders(`X-A|${'a'.repeat(4_093)}`),
        details: {
          originalHeaders: Object.fromEntries(
            Array.from({ length: 100 }, (_, at) => [`x${at}`, 'x'.repeat(100)]),
          ),
        },
      }),
    );
    expect(post.headers['x-a']).toHaveLength(4_093);
  });

  test('credentials of the callback URL as basic authorization', async () => {
    await using receiver = await startReceiver();
    await using webhook = startWebhook(receiver.host);
    const callbackUrl = receiver.url.replace('//', '//me:p%40ss@');
    await webhook.deliver(webhookCrawler({ callbackUrl }), deliveryOf('x'), never);
    const callbackHeaders = parseCallbackHeaders('Authorization:Bearer own');
    await webhook.deliver(
      webhookCrawler({ callbackUrl }),
      deliveryOf('x', { callbackHeaders }),
      never,
    );
    expect(receiver.deliveries.map((post) => post.headers['authorization'])).toEqual([
      `Basic ${Buffer.from('me:p@ss').toString('base64')}`,
      'Bearer own',
    ]);
  });
});

describe('uncompressed', () => {
  test.each([
    ['localhost', 'localhost', true],
    ['hooks.localhost', 'localhost', true],
    ['evil-localhost', 'localhost', false],
    ['localhost', 'hooks.localhost', false],
  ])('%s when the list has %s: %s', async (hostname, listed, isPlain) => {
    await using receiver = await startReceiver();
    const callbackUrl = receiver.url.replace('127.0.0.1', hostname);
    const client = createHttpClient({
      allow: parseNetworkAllow('127.0.0.1'),
      lookup: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
    });
    const webhook = createWebhook({
      client,
      clock: systemClock,
      ackTimeoutMs: 60_000,
      botName: 'Queued Crawler',
      uncompressedHosts: [listed],
      logger: silentLogger,
    });
    try {
      const secret = createWebhookSecret();
      const crawler = webhookCrawler({ callbackUrl, webhookSecrets: [{ secret }] });
      const delivery = deliveryOf('{"a":"é"}', { contentType: 'gzip/json' });
      expect(await webhook.deliver(crawler, delivery, never)).toMatchObject({ acknowledged: true });
      const [post] = receiver.deliveries;
      expect(post?.json).toEqual({ a: 'é' });
      expect(post?.headers['content-encoding']).toBe(isPlain ? undefined : 'gzip');
      expect(post?.headers['content-type']).toBe(isPlain ? 'application/json' : 'gzip/json');
      expect(new Verifier(secret).verify(post?.text ?? '', post?.headers ?? {})).toEqual({
        a: 'é',
      });
    } finally {
      await client.close();
    }
  });
});

test.each([
  'hooks.zapier.com',
  'hook.eu1.make.com',
  'hook.integromat.com',
  'acme.app.n8n.cloud',
  'eo1a2b3c.m.pipedream.net',
  'maker.ifttt.com',
  'prod-12.westeurope.logic.azure.com',
  'abc.09.environment.api.powerplatform.com',
])('%s is sent plain bodies by default', async (hostname) => {
  const sent: HttpRequest[] = [];
  const { deliver } = createWebhook({
    client: {
      request: async (request) => {
        sent.push(request);
        return { status: 200, headers: [], body: Buffer.alloc(0), answerMs: 1 };
      },
    },
    clock: systemClock,
    ackTimeoutMs: 200,
    botName: 'Queued Crawler',
    uncompressedHosts: readConfig({}).webhookPlainHosts,
    logger: silentLogger,
  });
  const crawler = webhookCrawler({ callbackUrl: `https://${hostname}/hook` });
  await deliver(crawler, deliveryOf('plain'), never);
  expect(sent[0]?.body).toEqual(Buffer.from('plain'));
});

describe('signatures', () => {
  test.each([
    [[], 0],
    [['127.0.0.1'], 100_000],
  ])(
    'plain bytes are freed when they are signed, unless they are sent: %j',
    async (hosts, left) => {
      await using receiver = await startReceiver();
      await using webhook = startWebhook(receiver.host, { uncompressedHosts: hosts });
      const secret = createWebhookSecret();
      const page = JSON.stringify('a'.repeat(99_998));
      const plain = new Uint8Array(Buffer.from(page));
      const by = webhookCrawler({ callbackUrl: receiver.url, webhookSecrets: [{ secret }] });
      await webhook.deliver(by, { ...deliveryOf(page), plain }, never);
      const [post] = receiver.deliveries;
      expect(new Verifier(secret).verify(post?.text ?? '', post?.headers ?? {})).toHaveLength(
        99_998,
      );
      expect(plain.byteLength).toBe(left);
    },
  );

  test('over the bytes as sent, and over the decompressed ones, by each living secret', async () => {
    const old = createWebhookSecret();
    const webhookSecrets = rotateSecrets([{ secret: old }], new Date());
    const post = await delivered(deliveryOf('{"a":1}'), { webhookSecrets });
    const signatures = post.headers['webhook-signature']?.split(' ');
    expect(signatures).toHaveLength(4);
    expect(post.headers['webhook-id']).toBe(post.rid);
    for (const { secret } of webhookSecrets) {
      const mac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
        .update(`${post.rid}.${post.headers['webhook-timestamp']}.`)
        .update(post.rawBody)
        .digest('base64');
      expect(signatures).toContain(`v1,${mac}`);
      expect(new Verifier(secret).verify(post.text, post.headers)).toEqual({ a: 1 });
    }
    expect(() => new Verifier(createWebhookSecret()).verify(post.text, post.headers)).toThrow();
  });

  test('not by an expired secret; none without secrets', async () => {
    const expired = { secret: createWebhookSecret(), expiresAt: new Date(Date.now() - 60_000) };
    const post = await delivered(deliveryOf('x'), { webhookSecrets: [expired] });
    expect(Object.keys(post.headers).filter((name) => name.startsWith('webhook-'))).toEqual([]);
  });

  test('every attempt has the same id', async () => {
    await using receiver = await startReceiver();
    await using webhook = startWebhook(receiver.host);
    const crawler = webhookCrawler({
      callbackUrl: receiver.url,
      webhookSecrets: [{ secret: createWebhookSecret() }],
    });
    await webhook.deliver(crawler, deliveryOf('x'), never);
    await webhook.deliver(crawler, deliveryOf('x', { attempt: 2 }), never);
    expect(new Set(receiver.deliveries.map((post) => post.headers['webhook-id'])).size).toBe(1);
  });
});

describe('what it came to', () => {
  test.each<[answer: ReceiverAnswer, acknowledged: boolean, status: number, error: RegExp]>([
    [{ status: 200 }, true, 200, /^$/],
    [{ status: 201 }, true, 201, /^$/],
    [{ status: 204 }, true, 204, /^$/],
    [{ status: 200, body: 'x'.repeat(100_000) }, true, 200, /^$/],
    // Only the three count, other successes do not.
    [{ status: 202 }, false, 202, /^status 202$/],
    [{ status: 206 }, false, 206, /^status 206$/],
    [{ status: 400 }, false, 400, /^status 400$/],
    [{ status: 500 }, false, 500, /^status 500$/],
    [{ redirect: '/hook' }, false, 302, /^status 302, redirects are not followed$/],
    [{ redirect: '/hook', status: 307 }, false, 307, /not followed/],
    [{ reset: true }, false, 0, /^connection_failed: /],
  ])('%j', async (answer, acknowledged, status, error) => {
    await using receiver = await startReceiver({ answer });
    await using webhook = startWebhook(receiver.host);
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const before = Date.now();
    const result = await webhook.deliver(crawler, deliveryOf('x', { attempt: 7 }), never);
    expect(result).toMatchObject({ acknowledged, log: { attempt: 7, status } });
    expect(result.log.error).toMatch(error);
    // The service's clock is read once and then followed by monotonic time.
    expect(result.log.startedAt.getTime()).toBeGreaterThanOrEqual(before - 20);
    expect(receiver.deliveries).toHaveLength(1);
  });

  test('an answer that comes too late', async () => {
    await using receiver = await startReceiver({ answer: { hang: true } });
    await using webhook = startWebhook(receiver.host, { ackTimeoutMs: 60 });
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const { acknowledged, log } = await webhook.deliver(crawler, deliveryOf('x'), never);
    expect(acknowledged).toBe(false);
    expect(log).toMatchObject({
      status: 0,
      error: 'timeout: no answer within 60 ms after the body was sent',
    });
    expect(log.durationMs).toBeGreaterThanOrEqual(55);
  });

  test('a body that never ends does not hold the acknowledgement back', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nsome');
      });
    });
    await using open = await listen(server);
    const { port } = open;
    {
      await using webhook = startWebhook(`127.0.0.1:${port}`);
      const crawler = webhookCrawler({ callbackUrl: `http://127.0.0.1:${port}/` });
      const result = await webhook.deliver(crawler, deliveryOf('x'), never);
      expect(result.acknowledged).toBe(true);
    }
    await new Promise((resolve) => server.close(resolve));
  });

  test('nobody listens', async () => {
    const receiver = await startReceiver();
    await receiver[Symbol.asyncDispose]();
    await using webhook = startWebhook(receiver.host);
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const { acknowledged, log } = await webhook.deliver(crawler, deliveryOf('x'), never);
    expect(acknowledged).toBe(false);
    expect(log.error).toMatch(/^connection_failed: .*ECONNREFUSED/);
  });

  test('an address that is not public is not reached', async () => {
    await using receiver = await startReceiver();
    await using webhook = startWebhook('');
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const { acknowledged, log } = await webhook.deliver(crawler, deliveryOf('x'), never);
    expect(acknowledged).toBe(false);
    expect(log.error).toMatch(/^address_not_allowed: /);
    expect(receiver.deliveries).toHaveLength(0);
  });

  test('no callback URL, or a page that does not decompress', async () => {
    await using receiver = await startReceiver();
    await using webhook = startWebhook(receiver.host);
    const none = webhookCrawler({ callbackUrl: undefined });
    expect((await webhook.deliver(none, deliveryOf('x'), never)).log.error).toMatch(/^invalid_url/);
    const crawler = webhookCrawler({
      callbackUrl: receiver.url,
      webhookSecrets: [{ secret: createWebhookSecret() }],
    });
    const broken = deliveryOf('x', { body: Buffer.from('not gzip') });
    expect((await webhook.deliver(crawler, broken, never)).log.error).toMatch(/^decoding_failed/);
    expect(receiver.deliveries).toHaveLength(0);
  });

  test('an abort rejects with its reason, before and during the POST', async () => {
    await using receiver = await startReceiver({ answer: { hang: true } });
    await using webhook = startWebhook(receiver.host);
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const reason = new Error('shutting down');
    await expect(webhook.deliver(crawler, deliveryOf('x'), AbortSignal.abort(reason))).rejects.toBe(
      reason,
    );
    expect(receiver.deliveries).toHaveLength(0);

    const controller = new AbortController();
    const ended = expect(webhook.deliver(crawler, deliveryOf('x'), controller.signal)).rejects.toBe(
      reason,
    );
    await receiver.until(1);
    controller.abort(reason);
    await ended;
  });
});

describe('the probe', () => {
  test('is the documented POST, signed like a delivery', async () => {
    await using receiver = await startReceiver();
    const clock = createTestClock();
    await using webhook = startWebhook(receiver.host, { clock });
    const secret = createWebhookSecret();
    const crawler = webhookCrawler({
      callbackUrl: `${receiver.url}?token=t`,
      webhookSecrets: [{ secret }],
    });
    expect(await webhook.probe(crawler, never)).toEqual({ healthy: true, error: '' });
    clock.advance(1_000);
    await webhook.probe(crawler, never);
    const [post, second] = receiver.probes;
    expect(post).toMatchObject({ path: '/hook?token=t', text: '{"monitor":true}', rid: '' });
    expect(post?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Queued Crawler Monitoring Bot 1.0',
    });
    expect(post?.headers['content-encoding']).toBeUndefined();
    expect(new Verifier(secret).verify(post?.text ?? '', post?.headers ?? {})).toEqual({
      monitor: true,
    });
    expect(second?.headers['webhook-id']).not.toBe(post?.headers['webhook-id']);
  });

  test.each<[answer: ReceiverAnswer, healthy: boolean, error: RegExp]>([
    // Any 2xx is enough.
    [{ status: 202 }, true, /^$/],
    [{ status: 204 }, true, /^$/],
    [{ status: 299 }, true, /^$/],
    [{ redirect: '/hook' }, false, /^status 302, redirects are not followed$/],
    [{ status: 404 }, false, /^status 404$/],
    [{ status: 503 }, false, /^status 503$/],
    [{ reset: true }, false, /^connection_failed: /],
  ])('%j', async (answer, healthy, error) => {
    await using receiver = await startReceiver();
    receiver.answerProbes(answer);
    await using webhook = startWebhook(receiver.host);
    const result = await webhook.probe(webhookCrawler({ callbackUrl: receiver.url }), never);
    expect(result.healthy).toBe(healthy);
    expect(result.error).toMatch(error);
  });

  test('does not reach private addresses, and rejects when aborted', async () => {
    await using receiver = await startReceiver();
    await using webhook = startWebhook('');
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const { healthy, error } = await webhook.probe(crawler, never);
    expect(healthy).toBe(false);
    expect(error).toMatch(/^address_not_allowed/);
    await expect(webhook.probe(crawler, AbortSignal.abort('stop'))).rejects.toBe('stop');
  });
});

describe('without a socket', () => {
  /** A webhook whose first `lacking` requests find no socket. */
  function startLacking(allow: string, lacking: number) {
    const client = createHttpClient({ allow: parseNetworkAllow(allow) });
    let left = lacking;
    const request: typeof client.request = (each) => {
      left -= 1;
      return left >= 0 ? Promise.reject(httpError('no_socket')) : client.request(each);
    };
    const webhook = startWebhook(allow, { client: { request } });
    return { ...webhook, [Symbol.asyncDispose]: () => client.close() };
  }

  test('a delivery waits for one, and is one attempt', async () => {
    await using receiver = await startReceiver();
    await using webhook = startLacking(receiver.host, 1);
    const by = webhookCrawler({ callbackUrl: receiver.url });
    const result = await webhook.deliver(by, deliveryOf('x'), never);
    expect(result).toMatchObject({ acknowledged: true, log: { attempt: 1, error: '' } });
    expect(receiver.deliveries).toHaveLength(1);
  });

  test('a probe says nothing about the callback URL', async () => {
    await using receiver = await startReceiver();
    await using webhook = startLacking(receiver.host, 1);
    const by = webhookCrawler({ callbackUrl: receiver.url });
    expect(await webhook.probe(by, never)).toMatchObject({ healthy: undefined });
    expect(await webhook.probe(by, never)).toMatchObject({ healthy: true });
  });
});

describe('results that are too long for one POST', () => {
  afterEach(() => vi.restoreAllMocks());

  const together = ['a', 'b', 'c', 'd', 'e'].map((rid) => deliveryOf(rid));
  const resultsOf = (headers: Readonly<Record<string, unknown>>) =>
    Number(headers['webhook-results']);

  /** A receiver that takes two at once; `onTaken` is called before it acknowledges. */
  const startShort = (
    onTaken: () => void = () => undefined,
    hangsAfter = Number.POSITIVE_INFINITY,
  ) => {
    let taken = 0;
    return startReceiver({
      answer({ headers }) {
        if (resultsOf(headers) > 2) return { status: 413 };
        taken += 1;
        onTaken();
        return taken > hangsAfter ? { hang: true } : { status: 200 };
      },
    });
  };

  test('are sent in parts', async () => {
    await using receiver = await startShort();
    await using webhook = startWebhook(receiver.host);
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const { results, isTooLong } = await webhook.deliverTogether(crawler, together, never);
    expect(isTooLong).toBe(true);
    expect(results.map(({ acknowledged }) => acknowledged)).toEqual(together.map(() => true));
    expect(receiver.deliveries.map(({ headers }) => resultsOf(headers))).toEqual([5, 3, 2, 1, 2]);
  });

  test('are not sent any more after half a minute', async () => {
    let laterMs = 0;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + laterMs);
    await using receiver = await startShort(() => {
      laterMs = 31_000;
    });
    await using webhook = startWebhook(receiver.host);
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const { results, isTooLong } = await webhook.deliverTogether(crawler, together, never);
    expect(isTooLong).toBe(true);
    expect(results).toHaveLength(2);
  });

  test('count as sent when the next part is aborted', async () => {
    await using receiver = await startShort(undefined, 1);
    await using webhook = startWebhook(receiver.host);
    const crawler = webhookCrawler({ callbackUrl: receiver.url });
    const controller = new AbortController();
    const sent = webhook.deliverTogether(crawler, together, controller.signal);
    await eventually(() => expect(receiver.deliveries).toHaveLength(4));
    controller.abort(new Error('shutting down'));
    expect((await sent).results).toMatchObject([{ acknowledged: true }, { acknowledged: true }]);
  });

  test('one page that does not decompress fails alone', async () => {
    await using receiver = await startReceiver();
    await using webhook = startWebhook(receiver.host);
    const secret = createWebhookSecret();
    const crawler = webhookCrawler({ callbackUrl: receiver.url, webhookSecrets: [{ secret }] });
    const broken = deliveryOf('x', { body: Buffer.from('not gzip') });
    const three = [...together.slice(0, 1), broken, ...together.slice(1, 2)];
    const { results } = await webhook.deliverTogether(crawler, three, never);
    expect(results.map(({ acknowledged }) => acknowledged)).toEqual([true, false, true]);
    expect(results[1]?.log.error).toMatch(/^decoding_failed/);
    expect(receiver.deliveries.map(({ headers }) => resultsOf(headers))).toEqual([1, 1]);
  });
});
