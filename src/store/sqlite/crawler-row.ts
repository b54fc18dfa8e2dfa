import type { TokenType } from '../../domain/account.ts';
import type { HeldUp, Streaks, TryKind } from '../../domain/attention.ts';
import type {
  Crawler,
  CrawlerCounters,
  CrawlerMoments,
  WebhookSecret,
} from '../../domain/crawler.ts';
import {
  fromStoredSettings,
  type StoredSettings,
  toStoredSettings,
} from '../../domain/crawler-settings.ts';
import { defined } from '../../domain/defined.ts';
import { pushedOf } from '../rules.ts';
import { type SqlRow, toDate, toOptionalDate } from './sql.ts';

interface StoredSecret {
  readonly secret: string;
  readonly expiresAt?: number;
}

function toSecrets(text: string): WebhookSecret[] {
  return (JSON.parse(text) as StoredSecret[]).map(({ secret, expiresAt }) =>
    expiresAt === undefined ? { secret } : { secret, expiresAt: new Date(expiresAt) },
  );
}

/** Signing secrets as a row keeps them. */
export function secretsText(secrets: readonly WebhookSecret[]): string {
  return JSON.stringify(
    secrets.map(({ secret, expiresAt }) => ({ secret, expiresAt: expiresAt?.getTime() })),
  );
}

/** The settings of a crawler as its row keeps them. */
export function settingsText(crawler: Crawler): string {
  return JSON.stringify(toStoredSettings(crawler));
}

/** Converts a row into a crawler. */
export function toCrawler(row: SqlRow): Crawler {
  return {
    crawlerId: String(row.crawler_id),
    accountId: String(row.account_id),
    name: String(row.name),
    tokenType: row.token_type as TokenType,
    delivery: row.delivery as Crawler['delivery'],
    callbackUrl: row.callback_url === null ? undefined : String(row.callback_url),
    ...fromStoredSettings(JSON.parse(String(row.settings)) as Partial<StoredSettings>),
    pausedByUser: row.paused_by_user === 1,
    pausedByMonitor: row.paused_by_monitor === 1,
    ...(row.paused_at === null ? {} : { pausedAt: toDate(row.paused_at) }),
    ...(row.pause_reason === null ? {} : { pauseReason: String(row.pause_reason) }),
    ...pausedHostsOf(row),
    webhookSecrets: toSecrets(String(row.webhook_secrets)),
    createdAt: toDate(row.created_at),
    updatedAt: toDate(row.updated_at),
  };
}

function pausedHostsOf(row: SqlRow): Pick<Crawler, 'pausedHosts'> {
  const pausedHosts = JSON.parse(String(row.paused_hosts)) as string[];
  return pausedHosts.length === 0 ? {} : { pausedHosts };
}

/** The counters of a row of `dispatch`, with the `last_probe_at` and `held_up` of its crawler. */
export function toCounters(row: SqlRow): CrawlerCounters {
  const counts = {
    waiting: Number(row.waiting),
    running: Number(row.running),
    retrying: Number(row.retrying),
    completed: Number(row.completed),
    failed: Number(row.failed),
    deleted: Number(row.deleted),
    purged: Number(row.purged),
  };
  return {
    ...counts,
    pushed: pushedOf(counts),
    deliveriesPending: Number(row.deliveries_pending),
    delivered: Number(row.delivered),
    ...(row.lease_owner === null
      ? {}
      : { dispatchedBy: { processId: String(row.lease_owner), until: toDate(row.lease_until) } }),
    last: toMoments(row),
    failing: toStreaks(row),
    ...(row.held_up === null ? {} : { heldUp: JSON.parse(String(row.held_up)) as HeldUp }),
  };
}

/** When something last happened, as a row of `dispatch` and its crawler say. */
export function toMoments(row: SqlRow): CrawlerMoments {
  return defined({
    push: toOptionalDate(row.last_push_at),
    crawl: toOptionalDate(row.last_crawl_at),
    delivery: toOptionalDate(row.last_delivery_at),
    success: toOptionalDate(row.last_success_at),
    probe: toOptionalDate(row.last_probe_at),
  });
}

/** The streaks of failed tries of a row of `dispatch`. */
export function toStreaks(row: SqlRow): Streaks {
  const kinds: readonly TryKind[] = ['crawl', 'delivery'];
  const known = kinds.filter((kind) => Number(row[`${kind}_failures`]) > 0);
  return Object.fromEntries(
    known.map((kind) => [
      kind,
      {
        count: Number(row[`${kind}_failures`]),
        since: toDate(row[`${kind}_failing_since`]),
        at: toDate(row[`${kind}_failed_at`]),
        error: String(row[`${kind}_error`]),
      },
    ]),
  );
}
