import type { TokenType } from '../../domain/account.ts';
import { toWall } from '../../domain/clock.ts';
import type { Crawler, CrawlerCounters } from '../../domain/crawler.ts';
import { assertEtag } from '../../domain/crawler-etag.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { invalidToken } from '../../domain/errors.ts';
import { exceedsLimit } from '../../domain/quotas.ts';
import {
  type CrawlerChange,
  changedAt,
  hostPauseChange,
  pauseChange,
  secretsChange,
} from '../crawler-changes.ts';
import { crawlerQuotaExceeded, quotaShare, UNLIMITED } from '../crawler-quota.ts';
import type { CrawlerPatch, CrawlerQuota, CrawlerStore, Paging, PauseChange } from '../store.ts';
import { secretsText, settingsText, toCounters, toCrawler } from './crawler-row.ts';
import type { InThread } from './in-thread.ts';
import { isLeased, setWake } from './lease.ts';
import { claimProbes, lateProbes, noteProbes, postponeProbes } from './probes.ts';
import { insertRow, type Sql } from './sql.ts';
import { beginSweep } from './sweep.ts';

/**
 * Adds to the account's counters of crawlers and concurrency. Throws when that would exceed a
 * quota.
 */
function countInAccount(
  sql: Sql,
  accountId: string,
  more: CrawlerQuota,
  quota: CrawlerQuota,
): void {
  const used = sql.get(
    'SELECT crawlers, concurrency FROM accounts WHERE account_id = ?',
    accountId,
  );
  if (used === undefined) {
    throw invalidToken();
  }
  for (const name of ['crawlers', 'concurrency'] as const) {
    const now = Number(used[name]);
    if (more[name] > 0 && exceedsLimit(quota[name], now, more[name])) {
      throw crawlerQuotaExceeded(name, quota, now);
    }
  }
  sql.run(
    'UPDATE accounts SET crawlers = crawlers + ?, concurrency = concurrency + ? WHERE account_id = ?',
    more.crawlers,
    more.concurrency,
    accountId,
  );
}

function insert(
  sql: Sql,
  crawler: Crawler,
  quota: CrawlerQuota = UNLIMITED,
): { crawler: Crawler; inserted: boolean } {
  const existing = findByName(sql, crawler.accountId, crawler.name);
  if (existing !== undefined) return { crawler: existing, inserted: false };
  countInAccount(sql, crawler.accountId, quotaShare(crawler), quota);
  insertRow(sql, 'crawlers', {
    crawler_id: crawler.crawlerId,
    account_id: crawler.accountId,
    name: crawler.name,
    token_type: crawler.tokenType,
    delivery: crawler.delivery,
    callback_url: crawler.callbackUrl ?? null,
    settings: settingsText(crawler),
    webhook_secrets: secretsText(crawler.webhookSecrets),
    paused_by_user: Number(crawler.pausedByUser),
    paused_by_monitor: Number(crawler.pausedByMonitor),
    created_at: crawler.createdAt.getTime(),
    updated_at: crawler.updatedAt.getTime(),
    // 0 is "not scheduled yet": `claimProbes` picks the first time, because only it knows the
    // interval.
    probe_at: deliveryModes[crawler.delivery].postsToCallback ? 0 : null,
  });
  insertRow(sql, 'dispatch', { crawler_id: crawler.crawlerId });
  return { crawler, inserted: true };
}

function findByName(sql: Sql, accountId: string, name: string): Crawler | undefined {
  const row = sql.get('SELECT * FROM crawlers WHERE account_id = ? AND name = ?', accountId, name);
  return row === undefined ? undefined : toCrawler(row);
}

/** The crawler of an identifier. */
export function getCrawler(sql: Sql, crawlerId: string): Crawler | undefined {
  const row = sql.get('SELECT * FROM crawlers WHERE crawler_id = ?', crawlerId);
  return row === undefined ? undefined : toCrawler(row);
}

function list(sql: Sql, accountId: string, paging: Paging, tokenType?: TokenType): Crawler[] {
  const { limit, after = '' } = paging;
  return sql
    .all(
      `SELECT * FROM crawlers WHERE account_id = ? AND name > ?
        AND token_type = coalesce(?, token_type) ORDER BY name LIMIT ?`,
      accountId,
      after,
      tokenType ?? null,
      limit,
    )
    .map(toCrawler);
}

function update(
  sql: Sql,
  crawlerId: string,
  patch: CrawlerPatch,
  now: Date,
  quota: Pick<CrawlerQuota, 'concurrency'> = UNLIMITED,
  etag?: string,
): Crawler | undefined {
  const crawler = getCrawler(sql, crawlerId);
  if (crawler === undefined) return undefined;
  assertEtag(crawler, etag);
  const next = { ...crawler, ...patch };
  const concurrency = quotaShare(next).concurrency - quotaShare(crawler).concurrency;
  if (concurrency !== 0) {
    const more = { crawlers: 0, concurrency };
    countInAccount(sql, crawler.accountId, more, { ...UNLIMITED, ...quota });
  }
  sql.run(
    'UPDATE crawlers SET callback_url = ?, settings = ?, updated_at = ? WHERE crawler_id = ?',
    next.callbackUrl ?? null,
    settingsText(next),
    changedAt(crawler, toWall(sql, now)).getTime(),
    crawlerId,
  );
  return getCrawler(sql, crawlerId);
}

/** Changes what is not a setting. */
function change(
  sql: Sql,
  crawlerId: string,
  to: CrawlerChange,
  now: Date,
): { crawler: Crawler; changed: boolean } | undefined {
  const crawler = getCrawler(sql, crawlerId);
  if (crawler === undefined) return undefined;
  const next = to(crawler, toWall(sql, now));
  if (next === undefined) return { crawler, changed: false };
  sql.run(
    `UPDATE crawlers SET paused_by_user = ?, paused_by_monitor = ?, paused_at = ?, pause_reason = ?,
      paused_hosts = ?, webhook_secrets = ?, updated_at = ? WHERE crawler_id = ?`,
    Number(next.pausedByUser),
    Number(next.pausedByMonitor),
    next.pausedAt?.getTime() ?? null,
    next.pauseReason ?? null,
    JSON.stringify(next.pausedHosts ?? []),
    secretsText(next.webhookSecrets),
    next.updatedAt.getTime(),
    crawlerId,
  );
  return { crawler: next, changed: true };
}

function setPaused(sql: Sql, crawlerId: string, to: PauseChange, now: Date, reason?: string) {
  const changed = change(sql, crawlerId, pauseChange(to, reason), now);
  // While leased, keep `wake_at`: it is the safety net if the holder crashes. `release` sets it.
  if (changed?.changed === true && !isLeased(sql, crawlerId, now)) setWake(sql, crawlerId);
  return changed;
}

function remove(sql: Sql, crawlerId: string): { purged: number } | undefined {
  const crawler = getCrawler(sql, crawlerId);
  const counters = sql.get(
    'SELECT waiting + retrying AS n, held_bytes FROM dispatch WHERE crawler_id = ?',
    crawlerId,
  );
  if (crawler === undefined || counters === undefined) return undefined;
  const purged = Number(counters.n);
  const share = quotaShare(crawler);
  sql.run(
    `UPDATE accounts SET queued = queued - ?, crawlers = crawlers - ?, concurrency = concurrency - ?,
      queued_bytes = queued_bytes - ? WHERE account_id = ?`,
    purged,
    share.crawlers,
    share.concurrency,
    Number(counters.held_bytes) + runningBytes(sql, crawlerId),
    crawler.accountId,
  );
  for (const table of ['dispatch', 'crawlers']) {
    sql.run(`DELETE FROM ${table} WHERE crawler_id = ?`, crawlerId);
  }
  beginSweep(sql, crawlerId, crawler.accountId);
  return { purged };
}

/** Bytes of the jobs that are being crawled. There are few of them. */
function runningBytes(sql: Sql, crawlerId: string): number {
  const row = sql.get(
    "SELECT coalesce(sum(size), 0) AS bytes FROM jobs WHERE crawler_id = ? AND state = 'running'",
    crawlerId,
  );
  return Number(row?.bytes);
}

function counters(sql: Sql, crawlerIds: readonly string[]): Map<string, CrawlerCounters> {
  const found = new Map<string, CrawlerCounters>();
  for (const crawlerId of crawlerIds) {
    const row = sql.get(
      `SELECT d.*, c.last_probe_at, h.held_up FROM dispatch d JOIN crawlers c USING (crawler_id)
        LEFT JOIN known_hosts h USING (crawler_id) WHERE crawler_id = ?`,
      crawlerId,
    );
    if (row === undefined) continue;
    found.set(crawlerId, toCounters(row));
  }
  return found;
}

/** Crawlers, their pauses and their counters. */
export const crawlers = {
  insert,
  findByName,
  get: getCrawler,
  list,
  update,
  replaceSecrets: (sql, crawlerId, newest, secrets, now) =>
    change(sql, crawlerId, secretsChange(newest, secrets), now),
  setPaused,
  setHostPaused: (sql, crawlerId, host, paused, now) =>
    change(sql, crawlerId, hostPauseChange(host, paused), now),
  remove,
  counters,
  claimProbes,
  postponeProbes,
  lateProbes,
  noteProbes,
} satisfies InThread<CrawlerStore>;
