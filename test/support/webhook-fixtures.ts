import { gzipSync } from 'node:zlib';
import type { Crawler } from '../../src/domain/crawler.ts';
import { defaultSettings } from '../../src/domain/crawler-settings.ts';
import type { Delivery } from '../../src/domain/delivery.ts';

/** A running webhook crawler; `overrides` replace its fields. */
export function webhookCrawler(overrides: Partial<Crawler> = {}): Crawler {
  return {
    crawlerId: '0123456789abcdef01234567',
    accountId: '89abcdef0123456789abcdef',
    name: 'prices',
    tokenType: 'normal',
    delivery: 'webhook',
    callbackUrl: 'https://hooks.example.com/in',
    ...defaultSettings,
    pausedByUser: false,
    pausedByMonitor: false,
    webhookSecrets: [],
    createdAt: new Date(),
    updatedAt: new Date(),
    ...overrides,
  };
}

/** The delivery of a page crawled well, its body the gzip of `text`; `overrides` replace its fields. */
export function deliveryOf(text: string, overrides: Partial<Delivery> = {}): Delivery {
  return {
    rid: '69f0c0de0123456789abcdef',
    crawlerId: '0123456789abcdef01234567',
    pushedUrl: 'https://example.com/',
    url: 'https://example.com/page',
    cbStatus: 200,
    originalStatus: 200,
    contentType: 'text/plain',
    body: gzipSync(text),
    coding: 'gzip',
    details: {},
    callbackHeaders: [],
    attempt: 1,
    createdAt: new Date(),
    ...overrides,
  };
}
