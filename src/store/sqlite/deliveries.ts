import type { Delivery, DeliveryAttempt, DeliverySummary } from '../../domain/delivery.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { MAX_KEPT_ANSWERS } from '../kept-delivery.ts';
import { MAX_LOGGED_ATTEMPTS } from '../rules.ts';
import type { DeliveryOutcome, DeliveryStore, Lease, ReplaySelector, Verdict } from '../store.ts';
import { createCounts } from './counts.ts';
import { parseAnswers, type StoredAttempt, toDeliverySummary } from './delivery-row.ts';
import type { Finishing } from './finish.ts';
import type { InThread } from './in-thread.ts';
import { rememberedPurgeCount, wakeBy } from './lease.ts';
import { toRecord } from './pages.ts';
import { type Sql, type SqlRow, type SqlValue, toDate, toOptionalText } from './sql.ts';

/** Claims due deliveries under a lease that is current; see `TurnWork.deliveries`. */
export function claimDeliveries(
  sql: Sql,
  { crawlerId, epoch }: Lease,
  { limit, maxBytes }: { readonly limit: number; readonly maxBytes: number },
  now: Date,
): Delivery[] {
  const due = sql.all(
    `SELECT * FROM deliveries WHERE crawler_id = ? AND state = 'due' AND due_at <= ?
      AND NOT EXISTS (SELECT 1 FROM crawlers c
        WHERE c.crawler_id = deliveries.crawler_id AND c.paused_by_monitor = 1)
      ORDER BY due_at, rid LIMIT ?`,
    crawlerId,
    now.getTime(),
    limit,
  );
  let bytes = 0;
  const taken = due.filter((row, index) => {
    bytes += Number(row.size);
    return index === 0 || bytes <= maxBytes;
  });
  return taken.map((row) => {
    sql.run(
      `UPDATE deliveries SET state = 'sending', attempt = attempt + 1, epoch = ? WHERE rid = ?`,
      epoch,
      String(row.rid),
    );
    return toDelivery(sql, row);
  });
}

function toDelivery(sql: Sql, row: SqlRow): Delivery {
  return {
    ...toRecord(sql, row),
    crawlerId: String(row.crawler_id),
    callbackHeaders: JSON.parse(String(row.callback_headers)) as HeaderPair[],
    attempt: Number(row.attempt) + 1,
    wasAttempted: row.attempts !== '[]',
    createdAt: toDate(row.created_at),
    traceparent: toOptionalText(row.traceparent),
  };
}

/** Ends delivery attempts; the caller writes the counts. */
export function settleDeliveries(
  { sql, counts, now }: Pick<Finishing, 'sql' | 'counts' | 'now'>,
  outcomes: readonly DeliveryOutcome[],
): Verdict[] {
  const purgesOf = rememberedPurgeCount(sql);
  return outcomes.map((outcome) => {
    const { rid, crawlerId, attempt, log, kind } = outcome;
    if (purgesOf(crawlerId) === undefined) return 'lost';
    const row = sql.get(
      `SELECT attempts, answers, expires_at FROM deliveries
        WHERE rid = ? AND crawler_id = ? AND attempt = ? AND state = 'sending'`,
      rid,
      crawlerId,
      attempt,
    );
    if (row === undefined) return 'lost';
    const again = kind === 'retry' || kind === 'release';
    sql.run(
      `UPDATE deliveries SET state = ?, due_at = ?, epoch = NULL, attempt = ?, attempts = ?,
        answers = ?, expires_at = ? WHERE rid = ?`,
      again ? 'due' : kind,
      again ? (outcome.dueAt ?? now).getTime() : null,
      kind === 'release' ? attempt - 1 : attempt,
      log === undefined ? String(row.attempts) : withAttempt(String(row.attempts), log),
      withAnswer(toOptionalText(row.answers), log),
      outcome.expiresAt?.getTime() ?? Number(row.expires_at),
      rid,
    );
    counts.of(crawlerId).addSettled(outcome);
    return 'won';
  });
}

function withAnswer(text: string | undefined, log: DeliveryAttempt | undefined): string | null {
  if (log?.answer === undefined) return text ?? null;
  const answers = [...parseAnswers(text), { attempt: log.attempt, text: log.answer }];
  return JSON.stringify(answers.slice(-MAX_KEPT_ANSWERS));
}

function withAttempt(text: string, { answer: _kept, ...log }: DeliveryAttempt): string {
  const attempts = JSON.parse(text) as StoredAttempt[];
  attempts.push({ ...log, startedAt: log.startedAt.getTime() });
  return JSON.stringify(attempts.slice(-MAX_LOGGED_ATTEMPTS));
}

function get(sql: Sql, crawlerId: string, rid: string): DeliverySummary | undefined {
  const row = sql.get('SELECT * FROM deliveries WHERE rid = ? AND crawler_id = ?', rid, crawlerId);
  if (row === undefined) return undefined;
  return toDeliverySummary(row);
}

/** The condition of a selector, and its values. */
function selected(which: ReplaySelector): {
  readonly condition: string;
  readonly values: readonly SqlValue[];
} {
  if ('rids' in which) {
    const values = [JSON.stringify(which.rids)];
    return { condition: 'rid IN (SELECT value FROM json_each(?))', values };
  }
  const values = [which.from.getTime(), which.to.getTime()];
  return { condition: 'created_at >= ? AND created_at < ?', values };
}

function replay(sql: Sql, crawlerId: string, which: ReplaySelector, now: Date): number {
  const { condition, values } = selected(which);
  const waiting = sql.run(
    `UPDATE deliveries SET due_at = min(due_at, ?)
      WHERE crawler_id = ? AND ${condition} AND state = 'due'`,
    now.getTime(),
    crawlerId,
    ...values,
  );
  const done = sql.run(
    `UPDATE deliveries SET state = 'due', due_at = ?
      WHERE crawler_id = ? AND ${condition} AND state IN ('delivered', 'failed')`,
    now.getTime(),
    crawlerId,
    ...values,
  );
  if (done > 0) {
    const counts = createCounts();
    counts.of(crawlerId).add('deliveriesPending', done);
    counts.write(sql, now);
  }
  if (done + waiting > 0) wakeBy(sql, crawlerId, now, 'delivery');
  return done + waiting;
}

function countReplayable(
  sql: Sql,
  crawlerId: string,
  which: ReplaySelector,
  limit: number,
): number {
  const { condition, values } = selected(which);
  const row = sql.get(
    `SELECT count(*) AS n FROM (SELECT 1 FROM deliveries WHERE crawler_id = ? AND ${condition}
      AND state <> 'sending' LIMIT ?)`,
    crawlerId,
    ...values,
    limit,
  );
  return Number(row?.n ?? 0);
}

/** Results on their way to callback URLs. */
export const deliveries = {
  get,
  replay,
  countReplayable,
} satisfies InThread<DeliveryStore>;
