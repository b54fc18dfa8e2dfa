import { isDeepStrictEqual } from 'node:util';
import type { TokenType } from '../../domain/account.ts';
import { parseCallbackUrl } from '../../domain/callback-url.ts';
import type { Crawler, DeliveryMode, Politeness } from '../../domain/crawler.ts';
import { DomainError } from '../../domain/errors.ts';
import { integerInRange } from '../../domain/limits.ts';

/** The settings of a create or update call; absent fields take their default, or stay. */
export interface CrawlerInput {
  readonly callbackUrl?: string;
  readonly concurrency?: number;
  readonly deliveryConcurrency?: number;
  readonly maxRetries?: number;
  readonly retryWindowHours?: number;
  readonly politeness?: Politeness;
  readonly delivery?: DeliveryMode;
  readonly tokenType?: TokenType;
}

/** The input, checked. Throws `invalid` naming the field. */
export function validateCrawlerInput(input: CrawlerInput): CrawlerInput {
  const { concurrency, deliveryConcurrency, maxRetries, retryWindowHours, politeness } = input;
  if (concurrency !== undefined) integerInRange('concurrency', concurrency, 1, 1_000);
  if (deliveryConcurrency !== undefined) {
    integerInRange('delivery_concurrency', deliveryConcurrency, 0, 1_000);
  }
  if (maxRetries !== undefined) integerInRange('max_retries', maxRetries, 0, 1_000);
  if (retryWindowHours !== undefined)
    integerInRange('retry_window_hours', retryWindowHours, 1, 336);
  if (politeness !== undefined) {
    integerInRange('politeness.max_per_host', politeness.maxPerHost, 0, 1_000);
    integerInRange('politeness.delay_ms', politeness.delayMs, 0, 3_600_000);
  }
  const callbackUrl =
    input.callbackUrl === undefined ? undefined : parseCallbackUrl(input.callbackUrl);
  const { callbackUrl: _given, ...others } = input;
  return callbackUrl === undefined ? others : { ...others, callbackUrl };
}

/** Undefined when all of it is off. */
export function politenessOrOff(politeness: Politeness | undefined): Politeness | undefined {
  const on =
    politeness !== undefined &&
    (politeness.maxPerHost > 0 || politeness.delayMs > 0 || politeness.robotsTxt);
  return on ? politeness : undefined;
}

/** Throws `failed_precondition` when what was chosen at creation would change. */
export function assertFixed(crawler: Crawler, wanted: CrawlerInput): void {
  const field =
    wanted.delivery !== undefined && wanted.delivery !== crawler.delivery
      ? 'delivery'
      : wanted.tokenType !== undefined && wanted.tokenType !== crawler.tokenType
        ? 'token_type'
        : undefined;
  if (field === undefined) return;
  throw new DomainError(
    'failed_precondition',
    field === 'delivery' ? 'delivery_mode_fixed' : 'token_type_fixed',
    `The ${field} of a crawler is chosen once, at creation; create a new crawler for another one.`,
    { field },
  );
}

/** A repeated creation is fine as long as everything it names is as it named it; throws `conflict` otherwise. */
export function assertSame(crawler: Crawler, wanted: CrawlerInput): void {
  const differs = (Object.keys(wanted) as (keyof CrawlerInput)[]).find(
    (key) =>
      key in crawler && wanted[key] !== undefined && !isDeepStrictEqual(wanted[key], crawler[key]),
  );
  const missingUrl = crawler.delivery === 'webhook' && wanted.callbackUrl === undefined;
  if (differs === undefined && !missingUrl) return;
  const field = (differs ?? 'callbackUrl').replace(
    /[A-Z]/g,
    (letter) => `_${letter.toLowerCase()}`,
  );
  throw new DomainError(
    'conflict',
    'crawler_exists',
    `A crawler "${crawler.name}" exists with another ${field}.`,
    { field },
  );
}
