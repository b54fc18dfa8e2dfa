import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { TokenOwner } from '../../domain/account.ts';
import { type ServiceClock, toWall } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { Delivery } from '../../domain/delivery.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { DomainError } from '../../domain/errors.ts';
import { CB_STATUS } from '../../domain/status.ts';
import type { Store } from '../../store/store.ts';
import type { DeliveryResult, Webhook } from '../../webhook/webhook.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';

/**
 * Sends a delivery of a made-up page to the crawler's callback URL, once. Throws `exhausted` when the
 * account has sent too many, `failed_precondition` when the crawler has no callback URL, and as
 * {@link CrawlerAccess} does.
 */
export type TestDelivery = (
  owner: TokenOwner,
  crawlerName: string,
  signal: AbortSignal,
) => Promise<Pick<DeliveryResult, 'acknowledged' | 'log'>>;

/** Tests of one account, in all processes together. */
const ALLOWANCE = { capacity: 10, refillMs: 60_000 };

const TEST_RID = '0'.repeat(24);
const TEST_URL = 'https://example.com/';
const TEST_PAGE = '<!doctype html><title>Test</title><p>This delivery is a test.';

const compress = promisify(gzip);

/** Makes the use case. */
export function createTestDelivery(deps: {
  readonly webhook: Pick<Webhook, 'deliver'>;
  readonly rates: Store['rates'];
  readonly access: Pick<CrawlerAccess, 'find'>;
  readonly clock: ServiceClock;
}): TestDelivery {
  const { webhook, rates, access, clock } = deps;

  return async (owner, crawlerName, signal) => {
    const crawler = await access.find(owner, crawlerName);
    if (!deliveryModes[crawler.delivery].postsToCallback) {
      const message = 'The crawler has no callback URL.';
      throw new DomainError('failed_precondition', 'no_webhook', message);
    }
    const now = clock.now();
    const key = `test_deliveries:${owner.account.accountId}`;
    const { granted, retryAfterMs } = await rates.takeWhole(key, 1, ALLOWANCE, now);
    if (!granted) {
      throw new DomainError(
        'exhausted',
        'too_many_test_deliveries',
        `An account sends at most ${ALLOWANCE.capacity} test deliveries a minute.`,
        { retryAfterMs },
      );
    }
    return webhook.deliver(crawler, await testDelivery(crawler, toWall(clock, now)), signal);
  };
}

async function testDelivery({ crawlerId }: Crawler, createdAt: Date): Promise<Delivery> {
  return {
    rid: TEST_RID,
    crawlerId,
    url: TEST_URL,
    pushedUrl: TEST_URL,
    cbStatus: CB_STATUS.success,
    originalStatus: 200,
    contentType: 'text/plain; charset=utf-8',
    body: await compress(TEST_PAGE),
    coding: 'gzip',
    details: {},
    callbackHeaders: [['test', 'true']],
    attempt: 1,
    createdAt,
  };
}
