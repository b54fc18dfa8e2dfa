import { createHash } from 'node:crypto';
import type { Crawler } from './crawler.ts';
import { type CrawlerSettings, toStoredSettings } from './crawler-settings.ts';
import { DomainError } from './errors.ts';

/** What clients change by an update: the same text for the same values, another for others. */
export function crawlerEtag(crawler: CrawlerSettings & Pick<Crawler, 'callbackUrl'>): string {
  const values = [crawler.callbackUrl ?? null, toStoredSettings(crawler)];
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url').slice(0, 16);
}

/** Throws `failed_precondition` when the crawler has changed since a client read `etag`; undefined skips the check. */
export function assertEtag(crawler: Crawler, etag: string | undefined): void {
  if (etag === undefined || etag === crawlerEtag(crawler)) return;
  throw new DomainError(
    'failed_precondition',
    'crawler_changed',
    `The crawler "${crawler.name}" has changed since it was read; read it again.`,
    { field: 'etag', resource: { type: 'crawler', name: crawler.name } },
  );
}
