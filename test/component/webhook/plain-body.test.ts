import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { Webhook as Verifier } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/domain/clock.ts';
import { createWebhookSecret } from '../../../src/domain/webhook-signature.ts';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { createWebhook } from '../../../src/webhook/create-webhook.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';
import { listen } from '../../support/listen.ts';
import { silentLogger } from '../../support/loggers.ts';
import { startReceiver } from '../../support/receiver.ts';
import { deliveryOf, webhookCrawler } from '../../support/webhook-fixtures.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;

function startWebhook() {
  const client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1') });
  const webhook = createWebhook({
    client,
    clock: systemClock,
    ackTimeoutMs: 60_000,
    botName: 'Queued Crawler',
    uncompressedHosts: ['127.0.0.1'],
    logger: silentLogger,
  });
  return { ...webhook, [Symbol.asyncDispose]: () => client.close() };
}

const long = 'a'.repeat(3 * MIB);

// The verifier of the standard parses what it has verified as JSON.
test.each([
  ['short', ['"short"']],
  ['long', [`"${long}"`]],
  ['of two members, the last of them short', [`"${long}`, 'end"']],
  ['of two members, the last of them long', ['"begin', `${long}"`]],
])('a page is sent and signed as its plain bytes: %s', async (_, members) => {
  const text = members.join('');
  const body = Buffer.concat(members.map((member) => gzipSync(member)));
  await using receiver = await startReceiver();
  await using webhook = startWebhook();
  const secret = createWebhookSecret();
  const crawler = webhookCrawler({ callbackUrl: receiver.url, webhookSecrets: [{ secret }] });
  const { log } = await webhook.deliver(crawler, deliveryOf('', { body }), never);
  expect(log).toMatchObject({ status: 200, error: '' });
  const [post] = receiver.deliveries;
  expect(post?.rawBody.toString() === text).toBe(true);
  expect(post?.headers).toMatchObject({ 'content-length': String(text.length) });
  expect(post?.headers).not.toHaveProperty('content-encoding');
  expect(new Verifier(secret).verify(post?.text ?? '', post?.headers ?? {})).toBe(JSON.parse(text));
});

test('a long page that does not decompress is a failed delivery', async () => {
  await using receiver = await startReceiver();
  await using webhook = startWebhook();
  const body = gzipSync('a'.repeat(MIB));
  body[body.length - 8] = (body.at(-8) ?? 0) ^ 1;
  const crawler = webhookCrawler({ callbackUrl: receiver.url });
  const { log } = await webhook.deliver(crawler, deliveryOf('', { body }), never);
  expect(log).toMatchObject({ status: 0, error: /^decoding_failed:/ });
  expect(receiver.deliveries).toHaveLength(0);
});

const zeros = gzipSync(Buffer.alloc(20 * MIB));

test.each([
  ['of one member', zeros],
  ['whose last member is short', Buffer.concat([zeros, gzipSync('end')])],
])('posts to a receiver that does not read hold little of pages %s', async (_, body) => {
  const held: ServerResponse[] = [];
  // It reads headers, and of bodies only what its system takes.
  const server = createServer({ highWaterMark: 1_024 }, (request, response) => {
    request.pause();
    held.push(response);
  });
  await using open = await listen(server);
  await collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  const over = new AbortController();
  {
    await using webhook = startWebhook();
    const crawler = webhookCrawler({ callbackUrl: `http://127.0.0.1:${open.port}/` });
    const posts = Array.from({ length: 20 }, () =>
      webhook.deliver(crawler, deliveryOf('', { body }), over.signal).catch(() => undefined),
    );
    const mostHeld: number[] = [];
    for (let isLast = false; !isLast; await wait(50)) {
      isLast = held.length === 20;
      await collectGarbage();
      mostHeld.push(process.memoryUsage().arrayBuffers - before);
    }
    expect(Math.max(...mostHeld)).toBeLessThan(100 * MIB);
    over.abort(new Error('the test is over'));
    await Promise.all(posts);
  }
  for (const response of held) response.destroy();
});
