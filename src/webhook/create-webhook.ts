import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import type { Delivery, EndpointAnswer } from '../domain/delivery.ts';
import type { HeaderPair } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import { parseRetryAfter } from '../domain/retry-after.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import {
  type HttpClient,
  HttpError,
  type HttpFailure,
  type HttpRequest,
} from '../net/http-client.ts';
import { callbackTarget } from './callback-target.ts';
import { deliveryHeaders } from './delivery-headers.ts';
import { headerValue } from './header-value.ts';
import { type SentBody, signedHeaders } from './signed-headers.ts';
import type { Webhook } from './webhook.ts';

const decompress = promisify(gunzip);

const ACKNOWLEDGED: ReadonlySet<number> = new Set([200, 201, 204]);
/** For the body to be taken; a large page on a slow line. */
const SEND_TIMEOUT_MS = 30_000;
const PROBE_TIMEOUT_MS = 10_000;
const DELIVERY_BOT = 'Queued Crawler Delivery Bot 1.0';
const MONITORING_BOT = 'Queued Crawler Monitoring Bot 1.0';

const OVERLOAD_STATUSES: ReadonlySet<number> = new Set([429, 503]);
const OVERLOAD_FAILURES: ReadonlySet<HttpFailure> = new Set([
  'connection_failed',
  'connect_timeout',
  'name_not_found',
  'timeout',
]);

/** An answer, or why there is none. */
interface PostAnswer {
  /** 0 when there was no answer. */
  readonly status: number;
  readonly error: string;
  /** From the last byte of the body to the answer. */
  readonly answerMs: number;
  readonly retryAfter?: string | undefined;
  readonly failed?: HttpError;
}

/** What the webhook works with. */
export interface WebhookDeps {
  readonly client: Pick<HttpClient, 'request'>;
  readonly clock: Clock;
  /** From the last byte of the body to the acknowledgement. */
  readonly ackTimeoutMs: number;
  /** For the connection to stand; default 5,000. */
  readonly connectTimeoutMs?: number;
  /** Hosts, with all below them, that are sent bodies without compression; in lower case. */
  readonly uncompressedHosts: readonly string[];
  readonly logger: Logger;
}

/** Makes the webhook; holds nothing that has to be closed. */
export function createWebhook(deps: WebhookDeps): Webhook {
  const { client, clock, ackTimeoutMs, connectTimeoutMs = 5_000, logger } = deps;
  const deliveryTimeoutMs = connectTimeoutMs + SEND_TIMEOUT_MS + ackTimeoutMs;

  function wantsPlain(hostname: string): boolean {
    return deps.uncompressedHosts.some(
      (host) => hostname === host || hostname.endsWith(`.${host}`),
    );
  }

  /** The status of the answer, or why there is none; rejects when aborted. */
  async function post(
    request: Pick<
      HttpRequest,
      'url' | 'headers' | 'body' | 'timeoutMs' | 'headersTimeoutMs' | 'claimant'
    >,
    signal: AbortSignal,
  ): Promise<PostAnswer> {
    try {
      const response = await client.request({
        ...request,
        method: 'POST',
        connectTimeoutMs: Math.min(connectTimeoutMs, request.timeoutMs),
        maxBodyBytes: 0,
        headersOnly: true,
        signal,
      });
      const { status, answerMs, headers } = response;
      const retryAfter = headers.find(([name]) => name === 'retry-after')?.[1];
      return { status, error: '', answerMs, retryAfter };
    } catch (failed) {
      signal.throwIfAborted();
      if (!(failed instanceof HttpError)) throw failed;
      const error = `${failed.code}: ${failed.message}`;
      return { status: 0, error, answerMs: 0, failed };
    }
  }

  async function bodyAndHeaders(crawler: Crawler, delivery: Delivery, hostname: string) {
    const isPlain = wantsPlain(hostname);
    const bytes = isPlain ? await decompress(delivery.body) : delivery.body;
    const body: SentBody = { bytes, isGzip: !isPlain };
    const message = { id: delivery.rid, sentAt: clock.now() };
    const headers: HeaderPair[] = [
      ['User-Agent', DELIVERY_BOT],
      ['Content-Type', contentTypeOf(delivery, isPlain)],
      ...(isPlain ? [] : [['Content-Encoding', 'gzip'] as const]),
      ...deliveryHeaders(delivery),
      ...(await signedHeaders(crawler.webhookSecrets, message, body)),
    ];
    return { bytes, headers };
  }

  function loadOf(answer: PostAnswer): EndpointAnswer {
    const { status, failed, answerMs } = answer;
    if (ACKNOWLEDGED.has(status)) return { kind: 'acknowledged', answerMs };
    if (failed !== undefined && !OVERLOAD_FAILURES.has(failed.code)) return { kind: 'other' };
    if (failed === undefined && !OVERLOAD_STATUSES.has(status)) return { kind: 'other' };
    const retryAfterMs = parseRetryAfter(answer.retryAfter, clock.now());
    return { kind: 'overloaded', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }

  function reasonOf(answer: PostAnswer, durationMs: number): string {
    const { status, failed } = answer;
    if (failed?.code === 'timeout') {
      return durationMs < deliveryTimeoutMs
        ? `timeout: no answer within ${ackTimeoutMs} ms after the body was sent`
        : 'timeout: the body was not taken in time';
    }
    if (failed !== undefined) return answer.error;
    if (ACKNOWLEDGED.has(status)) return '';
    const note = status >= 300 && status < 400 ? ', redirects are not followed' : '';
    return `status ${status}${note}`;
  }

  return {
    async deliver(crawler, delivery, signal) {
      signal.throwIfAborted();
      const startedAt = clock.now();
      const started = performance.now();
      const end = (status: number, error: string, answer: EndpointAnswer = { kind: 'other' }) => ({
        acknowledged: error === '',
        answer,
        log: {
          attempt: delivery.attempt,
          startedAt,
          status,
          durationMs: Math.round(performance.now() - started),
          error,
        },
      });
      const target = callbackTarget(crawler.callbackUrl);
      if (target === undefined) return end(0, 'invalid_url: the crawler has no callback URL');
      let sent: Awaited<ReturnType<typeof bodyAndHeaders>>;
      try {
        sent = await bodyAndHeaders(crawler, delivery, target.hostname);
      } catch (error) {
        logger.error({ err: error, rid: delivery.rid }, 'a stored page does not decompress');
        return end(0, 'decoding_failed: the stored page cannot be read');
      }
      const answer = await post(
        {
          url: target.url,
          claimant: claimantOf(crawler),
          headers: target.withCredentials(sent.headers),
          body: sent.bytes,
          timeoutMs: deliveryTimeoutMs,
          headersTimeoutMs: ackTimeoutMs,
        },
        signal,
      );
      const error = reasonOf(answer, performance.now() - started);
      if (error !== '') {
        logger.debug({ rid: delivery.rid, crawler: crawler.name, error }, 'delivery failed');
      }
      return end(answer.status, error, loadOf(answer));
    },

    async probe(crawler, signal) {
      signal.throwIfAborted();
      const target = callbackTarget(crawler.callbackUrl);
      if (target === undefined) {
        return { healthy: false, error: 'invalid_url: the crawler has no callback URL' };
      }
      const bytes = Buffer.from('{"monitor":true}');
      const sentAt = clock.now();
      const message = { id: `probe_${crawler.crawlerId}_${sentAt.getTime()}`, sentAt };
      // Signed like a delivery: an endpoint that verifies every request would refuse it otherwise, and be taken for broken.
      const signature = await signedHeaders(crawler.webhookSecrets, message, {
        bytes,
        isGzip: false,
      });
      const headers: HeaderPair[] = [
        ['User-Agent', MONITORING_BOT],
        ['Content-Type', 'application/json'],
        ...signature,
      ];
      const { status, error } = await post(
        {
          url: target.url,
          claimant: claimantOf(crawler),
          headers: target.withCredentials(headers),
          body: bytes,
          timeoutMs: PROBE_TIMEOUT_MS,
        },
        signal,
      );
      if (status >= 200 && status < 300) return { healthy: true, error: '' };
      return { healthy: false, error: error === '' ? `status ${status}` : error };
    },
  };
}

function claimantOf({ accountId, crawlerId }: Crawler): Claimant {
  return { accountId, crawlerId };
}

// `gzip/json` says that the bytes are compressed; plain JSON has a type that automation platforms parse.
function contentTypeOf(delivery: Delivery, isPlain: boolean): string {
  if (isPlain && delivery.contentType === 'gzip/json') return 'application/json';
  return headerValue(delivery.contentType);
}
