import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { DeliveryHeader } from '../domain/callback-headers.ts';
import { type ServiceClock, wallNow } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import type { Delivery, EndpointAnswer } from '../domain/delivery.ts';
import type { HeaderPair } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { HttpClient } from '../net/http-client.ts';
import { callbackTarget } from './callback-target.ts';
import { deliveryHeaders } from './delivery-headers.ts';
import { headerValue } from './header-value.ts';
import { post } from './post.ts';
import { deliveryError, probeError, toEndpointAnswer } from './post-verdict.ts';
import { type SentBody, signedHeaders } from './signed-headers.ts';
import type { DeliveryResult, Webhook } from './webhook.ts';

const decompress = promisify(gunzip);

const CONNECT_TIMEOUT_MS = 5_000;
/** For the endpoint to take the body: a large page on a slow line. */
const SEND_TIMEOUT_MS = 30_000;
const PROBE_TIMEOUT_MS = 10_000;
const DELIVERY_BOT = 'Queued Crawler Delivery Bot 1.0';
const MONITORING_BOT = 'Queued Crawler Monitoring Bot 1.0';
const PROBE_BODY = Buffer.from('{"monitor":true}');
const NO_CALLBACK_URL = 'invalid_url: the crawler has no callback URL';

/** What the webhook works with. */
export interface WebhookDeps {
  readonly client: Pick<HttpClient, 'request'>;
  readonly clock: ServiceClock;
  /** From the last byte of the body to the acknowledgement. */
  readonly ackTimeoutMs: number;
  /** For the connection to be established; default 5,000. */
  readonly connectTimeoutMs?: number;
  /**
   * Hosts, in lower case, that receive bodies without compression; the hosts below them do, too.
   */
  readonly uncompressedHosts: readonly string[];
  readonly logger: Logger;
}

/** Makes the webhook; holds nothing that has to be closed. */
export function createWebhook(deps: WebhookDeps): Webhook {
  return {
    deliver: (crawler, delivery, signal) => deliver(deps, crawler, delivery, signal),
    probe: (crawler, signal) => probe(deps, crawler, signal),
  };
}

async function deliver(
  deps: WebhookDeps,
  crawler: Crawler,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<DeliveryResult> {
  const { client, clock, logger, ackTimeoutMs } = deps;
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS } = deps;
  const timeoutMs = connectTimeoutMs + SEND_TIMEOUT_MS + ackTimeoutMs;
  signal.throwIfAborted();
  const { rid } = delivery;
  const attempt = startAttempt(delivery, clock);
  const target = callbackTarget(crawler);
  if (target === undefined) return attempt.end(0, NO_CALLBACK_URL);
  let message: Awaited<ReturnType<typeof deliveryMessage>>;
  try {
    message = await deliveryMessage(deps, crawler, delivery, target.url.hostname);
  } catch (error) {
    logger.error({ err: error, rid }, 'a stored page does not decompress');
    return attempt.end(0, 'decoding_failed: the stored page cannot be read');
  }
  const answer = await post(
    client,
    {
      ...message,
      url: target.url,
      headers: target.withCredentials(message.headers),
      claimant: toClaimant(crawler),
      timeoutMs,
      headersTimeoutMs: ackTimeoutMs,
    },
    connectTimeoutMs,
    signal,
  );
  const error = deliveryError(answer, attempt.durationMs(), { timeoutMs, ackTimeoutMs });
  if (error !== '') logger.debug({ rid, crawler: crawler.name, error }, 'delivery failed');
  const status = answer.kind === 'answered' ? answer.status : 0;
  return attempt.end(status, error, toEndpointAnswer(answer, wallNow(clock)));
}

/** Times an attempt, and makes its result: acknowledged when `error` is empty. */
function startAttempt({ attempt }: Delivery, clock: ServiceClock) {
  const startedAt = wallNow(clock);
  const started = performance.now();
  const durationMs = (): number => performance.now() - started;
  return {
    durationMs,
    end: (
      status: number,
      error: string,
      answer: EndpointAnswer = { kind: 'other' },
    ): DeliveryResult => ({
      acknowledged: error === '',
      answer,
      log: { attempt, startedAt, status, durationMs: Math.round(durationMs()), error },
    }),
  };
}

/** The body and headers of a delivery. Throws zlib's error when the page does not decompress. */
async function deliveryMessage(
  { clock, uncompressedHosts }: WebhookDeps,
  crawler: Crawler,
  delivery: Delivery,
  hostname: string,
): Promise<{ readonly body: Uint8Array; readonly headers: readonly HeaderPair[] }> {
  const isPlain = uncompressedHosts.some(
    (host) => hostname === host || hostname.endsWith(`.${host}`),
  );
  const { plain } = delivery;
  const bytes = isPlain ? (plain ?? (await decompress(delivery.body))) : delivery.body;
  const body: SentBody = { bytes, isGzip: !isPlain, ...defined({ plain }) };
  const message = { id: delivery.rid, sentAt: wallNow(clock) };
  const own: DeliveryHeader[] = [
    ['User-Agent', DELIVERY_BOT],
    ['Content-Type', contentType(delivery, isPlain)],
    ...(isPlain ? [] : [['Content-Encoding', 'gzip'] as const]),
    ...ofBatch(delivery),
  ];
  const signatures = await signedHeaders(crawler.webhookSecrets, message, body);
  const headers = [...own, ...deliveryHeaders(delivery), ...traceHeader(delivery), ...signatures];
  return { body: bytes, headers };
}

/** What a result says of its push and its page, and the event that is delivered in place of one. */
function ofBatch({ details: { batch, event, againOf, crawledAt } }: Delivery): DeliveryHeader[] {
  const headers = defined({
    'webhook-event': event,
    'webhook-batch': batch,
    'webhook-again-of': againOf,
    'webhook-crawled-at': crawledAt,
  });
  return Object.entries(headers) as DeliveryHeader[];
}

/** The trace of the delivery, unless the push set a header of that name. */
function traceHeader({ traceparent, callbackHeaders }: Delivery): HeaderPair[] {
  if (traceparent === undefined) return [];
  const isSet = callbackHeaders.some(([name]) => name.toLowerCase() === 'traceparent');
  return isSet ? [] : [['traceparent', traceparent]];
}

/**
 * `gzip/json` says that the bytes are compressed; plain JSON has a type that automation platforms
 * parse.
 */
function contentType(delivery: Delivery, isPlain: boolean): string {
  if (isPlain && delivery.contentType === 'gzip/json') return 'application/json';
  return headerValue(delivery.contentType);
}

async function probe(
  { client, clock, connectTimeoutMs = CONNECT_TIMEOUT_MS }: WebhookDeps,
  crawler: Crawler,
  signal: AbortSignal,
): Promise<{ healthy: boolean; error: string }> {
  signal.throwIfAborted();
  const target = callbackTarget(crawler);
  if (target === undefined) return { healthy: false, error: NO_CALLBACK_URL };
  const sentAt = wallNow(clock);
  const message = { id: `probe_${crawler.crawlerId}_${sentAt.getTime()}`, sentAt };
  const body: SentBody = { bytes: PROBE_BODY, isGzip: false };
  const headers: HeaderPair[] = [
    ['User-Agent', MONITORING_BOT],
    ['Content-Type', 'application/json'],
    // An endpoint that verifies every request would refuse an unsigned one and seem to be broken.
    ...(await signedHeaders(crawler.webhookSecrets, message, body)),
  ];
  const answer = await post(
    client,
    {
      url: target.url,
      claimant: toClaimant(crawler),
      headers: target.withCredentials(headers),
      body: PROBE_BODY,
      timeoutMs: PROBE_TIMEOUT_MS,
    },
    connectTimeoutMs,
    signal,
  );
  const error = probeError(answer);
  return { healthy: error === '', error };
}

function toClaimant({ accountId, crawlerId }: Crawler): Claimant {
  return { accountId, crawlerId };
}
