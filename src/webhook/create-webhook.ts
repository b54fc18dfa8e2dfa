import { performance } from 'node:perf_hooks';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { DeliveryHeader } from '../domain/callback-headers.ts';
import { type ServiceClock, wallNow } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import type { Delivery } from '../domain/delivery.ts';
import { discard } from '../domain/discard.ts';
import type { HeaderPair } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import { activeSecrets, startSigning } from '../domain/webhook-signature.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { HttpClient, RequestBody } from '../net/http-client.ts';
import { type Sent, startAttempt, unsent } from './attempt.ts';
import { type CallbackTarget, callbackTarget } from './callback-target.ts';
import { deliveryHeaders } from './delivery-headers.ts';
import { headerValue } from './header-value.ts';
import { plainBody } from './plain-body.ts';
import { post } from './post.ts';
import { deliveryError, lacksSocket, probeError, toEndpointAnswer } from './post-verdict.ts';
import { idOfResults, packedLines, resultLines, TooLong } from './result-lines.ts';
import { type SentBody, signedHeaders } from './signed-headers.ts';
import { unpackShort } from './unpack-short.ts';
import type { DeliveredTogether, DeliveryResult, SentDelivery, Webhook } from './webhook.ts';

const decompress = promisify(gunzip);

const CONNECT_TIMEOUT_MS = 5_000;
/** For the endpoint to take the body: a large page on a slow line. */
const SEND_TIMEOUT_MS = 30_000;
/** Before a POST for which the process had no socket is tried again. */
const SOCKET_WAIT_MS = 1_000;
const PROBE_TIMEOUT_MS = 10_000;
const PROBE_BODY = Buffer.from('{"monitor":true}');
const CONTENT_TOO_LARGE = 413;
/** After this time, parts of results that are still to be sent go back to the queue. */
const MAX_SPLIT_MS = 30_000;
const PART_NOT_SENT = 'a part of results was not sent';
const UNREADABLE = 'decoding_failed: the stored page cannot be read';
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
  /** The name that begins the User-Agent. */
  readonly botName: string;
  readonly logger: Logger;
}

/** Makes the webhook; holds nothing that has to be closed. */
export function createWebhook(deps: WebhookDeps): Webhook {
  return {
    deliver: (crawler, delivery, signal) => deliver(deps, crawler, delivery, signal),
    deliverTogether: (crawler, deliveries, signal) =>
      deliverTogether(deps, crawler, deliveries, signal),
    shownHeaders: (crawler, delivery, sentAt) => shownHeaders(deps, crawler, delivery, sentAt),
    probe: (crawler, signal) => probe(deps, crawler, signal),
  };
}

async function deliver(
  deps: WebhookDeps,
  crawler: Crawler,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<DeliveryResult> {
  const { clock, logger } = deps;
  signal.throwIfAborted();
  const { rid } = delivery;
  const attempt = startAttempt(clock);
  const target = callbackTarget(crawler);
  if (target === undefined) return attempt.end(delivery, unsent(NO_CALLBACK_URL));
  let message: Message;
  try {
    message = await deliveryMessage(deps, crawler, delivery, target.url.hostname);
  } catch (error) {
    logger.error({ err: error, rid }, 'a stored page does not decompress');
    return attempt.end(delivery, unsent(UNREADABLE));
  }
  const sent = await send(deps, crawler, target, message, signal);
  const { error } = sent;
  if (error !== '') logger.debug({ rid, crawler: crawler.name, error }, 'delivery failed');
  return attempt.end(delivery, sent);
}

async function deliverTogether(
  deps: WebhookDeps,
  crawler: Crawler,
  deliveries: readonly Delivery[],
  signal: AbortSignal,
): Promise<DeliveredTogether> {
  const untilMs = performance.now() + MAX_SPLIT_MS;
  const parts: (readonly Delivery[])[] = [deliveries];
  const results: DeliveryResult[] = [];
  let isTooLong = false;
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const isBegun = results.length > 0;
    if (isBegun && performance.now() >= untilMs) break;
    try {
      const sent = await deliverPart(deps, crawler, part, signal);
      if ('results' in sent) results.push(...sent.results);
      else parts.unshift(...sent.parts);
      isTooLong ||= 'isTooLong' in sent;
    } catch (error) {
      // What became of the parts before is known.
      if (!isBegun) throw error;
      if (!signal.aborted) deps.logger.error({ err: error, crawler: crawler.name }, PART_NOT_SENT);
      break;
    }
  }
  return { results, isTooLong };
}

/** Sends a part of results, or says in which parts to send it. */
async function deliverPart(
  deps: WebhookDeps,
  crawler: Crawler,
  part: readonly Delivery[],
  signal: AbortSignal,
): Promise<
  | { readonly results: readonly DeliveryResult[] }
  | { readonly parts: readonly (readonly Delivery[])[]; readonly isTooLong?: true }
> {
  const { clock, logger } = deps;
  signal.throwIfAborted();
  const attempt = startAttempt(clock);
  const endAll = (sent: Sent) => ({ results: part.map((each) => attempt.end(each, sent)) });
  const target = callbackTarget(crawler);
  if (target === undefined) return endAll(unsent(NO_CALLBACK_URL));
  let message: Message;
  try {
    message = await messageOfResults(deps, crawler, part, target.url.hostname);
  } catch (error) {
    if (error instanceof TooLong) return { parts: halvesOf(part), isTooLong: true };
    // So that a page that cannot be read fails alone.
    if (part.length > 1) return { parts: part.map((each) => [each]) };
    logger.error({ err: error, rid: part[0]?.rid }, 'a stored page does not decompress');
    return endAll(unsent(UNREADABLE));
  }
  for (const { plain } of part) if (plain !== undefined) discard(plain);
  const sent = await send(deps, crawler, target, message, signal);
  const { status, error } = sent;
  if (status === CONTENT_TOO_LARGE && part.length > 1) {
    const packed = part.map(({ plain: _freed, ...delivery }) => delivery);
    return { parts: halvesOf(packed), isTooLong: true };
  }
  if (error !== '') {
    logger.debug({ results: part.length, crawler: crawler.name, error }, 'delivery failed');
  }
  return endAll(sent);
}

function halvesOf(deliveries: readonly Delivery[]): readonly Delivery[][] {
  const middle = Math.ceil(deliveries.length / 2);
  return [deliveries.slice(0, middle), deliveries.slice(middle)];
}

/** A POST before it is addressed. */
interface Message {
  readonly body: RequestBody;
  readonly headers: readonly HeaderPair[];
}

/** Sends a message; `error` is empty when it was acknowledged. */
async function send(
  deps: WebhookDeps,
  crawler: Crawler,
  target: CallbackTarget,
  message: Message,
  signal: AbortSignal,
): Promise<Sent> {
  const { client, clock, ackTimeoutMs } = deps;
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS } = deps;
  const timeoutMs = connectTimeoutMs + SEND_TIMEOUT_MS + ackTimeoutMs;
  const request = {
    ...message,
    url: target.url,
    headers: target.withCredentials(message.headers),
    claimant: toClaimant(crawler),
    timeoutMs,
    headersTimeoutMs: ackTimeoutMs,
  };
  const begunMs = performance.now();
  let startedMs = begunMs;
  let answer = await post(client, request, connectTimeoutMs, signal);
  while (lacksSocket(answer) && performance.now() - begunMs < timeoutMs) {
    await sleep(SOCKET_WAIT_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    startedMs = performance.now();
    answer = await post(client, request, connectTimeoutMs, signal);
  }
  const durationMs = performance.now() - startedMs;
  return {
    status: answer.kind === 'answered' ? answer.status : 0,
    error: deliveryError(answer, durationMs, { timeoutMs, ackTimeoutMs }),
    answer: toEndpointAnswer(answer, wallNow(clock)),
    ...defined({ excerpt: answer.kind === 'answered' ? answer.excerpt : undefined }),
  };
}

/** The body and headers of results that are sent together. Throws as `deliveryMessage` does. */
async function messageOfResults(
  { clock, uncompressedHosts, botName }: WebhookDeps,
  crawler: Crawler,
  deliveries: readonly Delivery[],
  hostname: string,
): Promise<Message> {
  const isPlain = isUncompressed(uncompressedHosts, hostname);
  const message = { id: idOfResults(deliveries), sentAt: wallNow(clock) };
  const lines = resultLines(
    deliveries,
    async (packed) => unpackShort(packed) ?? (await decompress(packed)),
  );
  let body: SentBody & { readonly bytes: Uint8Array };
  if (isPlain) body = { isGzip: false, bytes: await buffer(lines) };
  else {
    const secrets = activeSecrets(crawler.webhookSecrets, message.sentAt);
    const signing = startSigning(secrets, message);
    const bytes = await packedLines(lines, signing);
    body = { isGzip: true, bytes, signing };
  }
  const own: DeliveryHeader[] = [
    deliveryBot(botName),
    ['Content-Type', 'application/x-ndjson'],
    ...(isPlain ? [] : [['Content-Encoding', 'gzip'] as const]),
    ['webhook-results', String(deliveries.length)],
  ];
  const signatures = await signedHeaders(crawler.webhookSecrets, message, body);
  const { traceparent } = deliveries[0] ?? {};
  const trace: HeaderPair[] = traceparent === undefined ? [] : [['traceparent', traceparent]];
  return { body: body.bytes, headers: [...own, ...trace, ...signatures] };
}

function isUncompressed(hosts: readonly string[], hostname: string): boolean {
  return hosts.some((host) => hostname === host || hostname.endsWith(`.${host}`));
}

/**
 * The body and headers of a delivery, whose `plain` bytes are freed unless they are sent. Throws zlib's
 * error when the page does not decompress.
 */
async function deliveryMessage(
  { clock, uncompressedHosts, botName }: WebhookDeps,
  crawler: Crawler,
  delivery: Delivery,
  hostname: string,
): Promise<Message> {
  const isPlain = isUncompressed(uncompressedHosts, hostname);
  const { plain } = delivery;
  const body: SentBody = isPlain
    ? { isGzip: false, bytes: plain ?? (await plainBody(delivery.body)) }
    : { isGzip: true, bytes: delivery.body, ...defined({ plain }) };
  const message = { id: delivery.rid, sentAt: wallNow(clock) };
  const signatures = await signedHeaders(crawler.webhookSecrets, message, body);
  // Left to the garbage collector, pages make its full runs five times as frequent.
  if (!isPlain && plain !== undefined) discard(plain);
  const headers = [...unsignedHeaders(delivery, botName, isPlain), ...signatures];
  return { body: body.bytes, headers };
}

const deliveryBot = (botName: string): DeliveryHeader => [
  'User-Agent',
  `${botName} Delivery Bot 1.0`,
];

function unsignedHeaders(delivery: SentDelivery, botName: string, isPlain: boolean): HeaderPair[] {
  const own: DeliveryHeader[] = [
    deliveryBot(botName),
    ['Content-Type', contentType(delivery, isPlain)],
    ...(isPlain ? [] : [['Content-Encoding', 'gzip'] as const]),
    ...ofBatch(delivery),
  ];
  return [...own, ...deliveryHeaders(delivery), ...traceHeader(delivery)];
}

/** Headers whose values are secret: of these names, or with one of these words in theirs. */
const SECRET_HEADER = /^(authorization|cookie|proxy-authorization)$|token|secret|password|key/i;

function shownHeaders(
  { uncompressedHosts, botName }: Pick<WebhookDeps, 'uncompressedHosts' | 'botName'>,
  crawler: Crawler,
  delivery: SentDelivery,
  sentAt: Date,
): HeaderPair[] {
  const target = callbackTarget(crawler);
  if (target === undefined) return [];
  const isPlain = isUncompressed(uncompressedHosts, target.url.hostname);
  const signed: HeaderPair[] = [
    ['webhook-id', delivery.rid],
    ['webhook-timestamp', String(Math.floor(sentAt.getTime() / 1_000))],
    ['webhook-signature', HIDDEN],
  ];
  const all = target.withCredentials([...unsignedHeaders(delivery, botName, isPlain), ...signed]);
  return all.map(([name, value]) => [name, SECRET_HEADER.test(name) ? HIDDEN : value]);
}

const HIDDEN = '(hidden)';

/** What a result says of its push and its page, and the event that is delivered in place of one. */
function ofBatch({
  details: { batch, event, againOf, crawledAt, rung, climbed },
}: SentDelivery): DeliveryHeader[] {
  const headers = defined({
    'webhook-event': event,
    'webhook-batch': batch,
    'webhook-again-of': againOf,
    'webhook-crawled-at': crawledAt,
    'webhook-rung': rung,
    'webhook-climbed': climbed,
  });
  return Object.entries(headers) as DeliveryHeader[];
}

/** The trace of the delivery, unless the push set a header of that name. */
function traceHeader({ traceparent, callbackHeaders }: SentDelivery): HeaderPair[] {
  if (traceparent === undefined) return [];
  const isSet = callbackHeaders.some(([name]) => name.toLowerCase() === 'traceparent');
  return isSet ? [] : [['traceparent', traceparent]];
}

/**
 * `gzip/json` says that the bytes are compressed; plain JSON has a type that automation platforms
 * parse.
 */
function contentType(delivery: SentDelivery, isPlain: boolean): string {
  if (isPlain && delivery.contentType === 'gzip/json') return 'application/json';
  return headerValue(delivery.contentType);
}

async function probe(
  { client, clock, botName, connectTimeoutMs = CONNECT_TIMEOUT_MS }: WebhookDeps,
  crawler: Crawler,
  signal: AbortSignal,
): ReturnType<Webhook['probe']> {
  signal.throwIfAborted();
  const target = callbackTarget(crawler);
  if (target === undefined) return { healthy: false, error: NO_CALLBACK_URL };
  const sentAt = wallNow(clock);
  const message = { id: `probe_${crawler.crawlerId}_${sentAt.getTime()}`, sentAt };
  const body: SentBody = { bytes: PROBE_BODY, isGzip: false };
  const headers: HeaderPair[] = [
    ['User-Agent', `${botName} Monitoring Bot 1.0`],
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
  return { healthy: lacksSocket(answer) ? undefined : error === '', error };
}

function toClaimant({ accountId, crawlerId }: Crawler): Claimant {
  return { accountId, crawlerId };
}
