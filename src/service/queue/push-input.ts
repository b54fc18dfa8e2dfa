import { parseCallbackHeaders } from '../../domain/callback-headers.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { defined } from '../../domain/defined.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import type { Job } from '../../domain/job.ts';
import { integerInRange, MAX_QUEUE_TIMEOUT_MINUTES } from '../../domain/limits.ts';
import { parseMetadata } from '../../domain/metadata.ts';
import { createRid } from '../../domain/rid.ts';
import { type CrawlInput, type CrawlOffer, parseCrawlRequest } from './crawl-request.ts';

/** One URL to queue, as the client gives it. */
export interface PushInput extends CrawlInput {
  readonly callbackHeaders?: string;
  /** Minutes. */
  readonly queueTimeout?: number;
  /** JSON. */
  readonly metadata?: string;
}

/** The job of a push. Throws `invalid` naming the field. */
export function toJob(input: PushInput, crawler: Crawler, now: Date, offer: CrawlOffer): Job {
  const minutes = input.queueTimeout ?? 0;
  if (minutes !== 0) integerInRange('queue_timeout', minutes, 1, MAX_QUEUE_TIMEOUT_MINUTES);
  const headers = deliveryModes[crawler.delivery].postsToCallback
    ? (input.callbackHeaders ?? '')
    : '';
  return {
    ...parseCrawlRequest(input, crawler.tokenType, offer),
    rid: createRid(now),
    crawlerId: crawler.crawlerId,
    accountId: crawler.accountId,
    callbackHeaders: headers === '' ? [] : parseCallbackHeaders(headers),
    queueDeadline: minutes === 0 ? undefined : new Date(now.getTime() + minutes * 60_000),
    createdAt: now,
    ...defined({ metadata: parseMetadata(input.metadata ?? '') }),
  };
}
