import { parseBatchName } from '../../domain/batch.ts';
import { parseCallbackHeaders } from '../../domain/callback-headers.ts';
import { fromWall, type WallClock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { type DomainError, invalidField } from '../../domain/errors.ts';
import type { CrawlRequest, Job } from '../../domain/job.ts';
import {
  integerInRange,
  MAX_DELAY_SECONDS,
  MAX_QUEUE_TIMEOUT_MINUTES,
  MAX_UNIQUE_SECONDS,
} from '../../domain/limits.ts';
import { parseMetadata } from '../../domain/metadata.ts';
import { DEFAULT_PRIORITY, MAX_PRIORITY } from '../../domain/priority.ts';
import { createRid } from '../../domain/rid.ts';
import { assertKeyLength, type UniqueKey, uniqueKey } from '../../domain/unique-key.ts';
import { type CrawlInput, type CrawlOffer, parseCrawlRequest } from './crawl-request.ts';
import { laneOf } from './lane-of.ts';

/** One URL to queue, as the client gives it. */
export interface PushInput extends CrawlInput {
  /** Why it could not be read; the rest is empty then. */
  readonly refusal?: DomainError | undefined;
  readonly callbackHeaders?: string | undefined;
  /** Minutes. */
  readonly queueTimeout?: number | undefined;
  /** The failed crawl that it repeats. */
  readonly againOf?: string | undefined;
  /** The name of a batch. */
  readonly batch?: string | undefined;
  /** JSON. */
  readonly metadata?: string | undefined;
  readonly priority?: number | undefined;
  /** By the clock that people see. */
  readonly notBefore?: Date | undefined;
  /** Seconds. */
  readonly delay?: number | undefined;
  readonly unique?: boolean | undefined;
  readonly uniqueKey?: string | undefined;
  /** Seconds. */
  readonly uniqueFor?: number | undefined;
}

/** What a job is made with. */
interface Making {
  readonly clock: WallClock;
  readonly now: Date;
  readonly offer: CrawlOffer;
  readonly traceparent: string | undefined;
}

/** The job of a push. Throws `invalid` naming the field. */
export function toJob(input: PushInput, crawler: Crawler, making: Making): Job {
  if (input.refusal !== undefined) throw input.refusal;
  const { now, offer, traceparent } = making;
  // 0 stands for none.
  const minutes = integerInRange(
    'queue_timeout',
    input.queueTimeout ?? 0,
    0,
    MAX_QUEUE_TIMEOUT_MINUTES,
  );
  const headers = deliveryModes[crawler.delivery].postsToCallback
    ? (input.callbackHeaders ?? '')
    : '';
  const notBefore = toNotBefore(input, making);
  const waitsFrom = notBefore ?? now;
  const { request, host } = parseCrawlRequest(input, crawler.tokenType, offer, crawler.proxy);
  return {
    url: request.url,
    method: request.method,
    body: request.body,
    contentType: request.contentType,
    parameters: request.parameters,
    rid: createRid(now),
    crawlerId: crawler.crawlerId,
    accountId: crawler.accountId,
    host: laneOf(host, crawler.groupByDomain),
    priority: integerInRange('priority', input.priority ?? DEFAULT_PRIORITY, 0, MAX_PRIORITY),
    callbackHeaders: headers === '' ? [] : parseCallbackHeaders(headers),
    queueDeadline: minutes === 0 ? undefined : new Date(waitsFrom.getTime() + minutes * 60_000),
    createdAt: now,
    againOf: input.againOf,
    batch: parseBatchName(input.batch ?? ''),
    metadata: parseMetadata(input.metadata ?? ''),
    notBefore,
    unique: toUnique(input, crawler, request, now),
    traceparent,
  };
}

/** The unique key of a push, if it or its crawler asks for one. */
function toUnique(
  { unique, uniqueKey: given = '', uniqueFor }: PushInput,
  crawler: Crawler,
  request: CrawlRequest,
  now: Date,
): UniqueKey | undefined {
  assertKeyLength(given);
  const seconds = uniqueFor ?? crawler.uniqueFor ?? 0;
  integerInRange('unique_for', seconds, 0, MAX_UNIQUE_SECONDS);
  const isAsked = given !== '' || uniqueFor !== undefined || crawler.unique === true;
  if (!(unique ?? isAsked)) return undefined;
  const key = uniqueKey(given, request);
  return seconds === 0 ? { key } : { key, until: new Date(now.getTime() + seconds * 1_000) };
}

/** When the URL may be crawled at the earliest, by the service time; undefined for at once. */
function toNotBefore(
  { notBefore, delay = 0 }: PushInput,
  { clock, now }: Making,
): Date | undefined {
  integerInRange('delay', delay, 0, MAX_DELAY_SECONDS);
  if (notBefore === undefined)
    return delay === 0 ? undefined : new Date(now.getTime() + delay * 1_000);
  if (delay !== 0) throw invalidField('delay', 'Give not_before or delay, not both.');
  const moment = fromWall(clock, notBefore);
  // A time that no calendar has is not a number.
  if (!(moment.getTime() <= now.getTime() + MAX_DELAY_SECONDS * 1_000)) {
    throw invalidField('not_before', 'not_before must be within 30 days.');
  }
  return moment > now ? moment : undefined;
}
