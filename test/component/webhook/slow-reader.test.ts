import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/domain/clock.ts';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { createWebhook } from '../../../src/webhook/create-webhook.ts';
import { listen } from '../../support/listen.ts';
import { silentLogger } from '../../support/loggers.ts';
import { deliveryOf, webhookCrawler } from '../../support/webhook-fixtures.ts';

const MIB = 1024 * 1024;
const isLinux = process.platform === 'linux';

/**
 * Posts a body that does not compress to a server that handles it with `handle`, with this limit
 * for the acknowledgement.
 */
async function deliver(
  bytes: number,
  ackTimeoutMs: number,
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
) {
  const server = createServer({ highWaterMark: 65_536 }, (request, response) => {
    handle(request, response).catch(() => undefined);
  });
  await using open = await listen(server);
  const client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1') });
  try {
    const webhook = createWebhook({
      client,
      clock: systemClock,
      ackTimeoutMs,
      botName: 'Queued Crawler',
      uncompressedHosts: [],
      logger: silentLogger,
    });
    const crawler = webhookCrawler({ callbackUrl: `http://127.0.0.1:${open.port}/` });
    const delivery = deliveryOf('', { body: randomBytes(bytes) });
    return await webhook.deliver(crawler, delivery, new AbortController().signal);
  } finally {
    await client.close();
  }
}

/** Reads `rate` bytes a second from the connection itself, then answers. */
async function readSlowly(request: IncomingMessage, response: ServerResponse, rate: number) {
  for await (const chunk of request) await sleep(((chunk as Buffer).length / rate) * 1_000);
  response.writeHead(204).end();
}

test.skipIf(!isLinux)(
  'a receiver that needs longer for 2 MB than it has to acknowledge is acknowledged at the first attempt',
  async () => {
    // It reads for 16 s, the last of them out of the buffers of its own system.
    const { acknowledged, log } = await deliver(2 * MIB, 6_000, (request, response) =>
      readSlowly(request, response, MIB / 8),
    );
    expect(log).toMatchObject({ status: 204, error: '' });
    expect(acknowledged).toBe(true);
  },
);

test('a receiver that reads a long body at once and never answers has failed after the time to acknowledge', async () => {
  const { acknowledged, log } = await deliver(2 * MIB, 200, async (request) => {
    for await (const chunk of request) void chunk;
  });
  expect(acknowledged).toBe(false);
  // Another error than that of a receiver that reads no more, or of the whole attempt.
  expect(log.error).toMatch(/^timeout: no answer within 200 ms/);
});

test.skipIf(!isLinux)(
  'a receiver that stops reading in the middle of a long body is given up',
  async () => {
    const { acknowledged, log } = await deliver(2 * MIB, 200, async (request) => {
      request.pause();
      await new Promise(() => undefined);
    });
    expect(acknowledged).toBe(false);
    // Long before the time of the whole attempt.
    expect(log.error).toMatch(/^timeout: no answer within 200 ms/);
  },
);
