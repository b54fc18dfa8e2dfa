import type { TokenType } from '../../domain/account.ts';
import type { Crawler, WebhookSecret } from '../../domain/crawler.ts';
import {
  fromStoredSettings,
  type StoredSettings,
  toStoredSettings,
} from '../../domain/crawler-settings.ts';
import { type SqlRow, toDate } from './sql.ts';

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
    webhookSecrets: toSecrets(String(row.webhook_secrets)),
    createdAt: toDate(row.created_at),
    updatedAt: toDate(row.updated_at),
  };
}
