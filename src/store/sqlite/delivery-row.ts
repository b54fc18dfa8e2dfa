import type { DeliveryAttempt, DeliverySummary } from '../../domain/delivery.ts';
import type { ResultDetails } from '../../domain/result.ts';
import { type KeptAnswer, withAnswers } from '../rules.ts';
import { type SqlRow, toDate, toOptionalDate, toOptionalText } from './sql.ts';

/** An attempt as a row keeps it. */
export type StoredAttempt = Omit<DeliveryAttempt, 'startedAt'> & { readonly startedAt: number };

/** The columns that {@link toDeliverySummary} reads. */
export const SUMMARY_COLUMNS =
  'rid, crawler_id, state, due_at, created_at, url, pushed_url, cb_status, original_status, extras, size, attempts';

/** The summary of a row of deliveries, with its last `maxAttempts` attempts and the answers that it has. */
export function toDeliverySummary(
  row: SqlRow,
  maxAttempts = Number.POSITIVE_INFINITY,
): DeliverySummary {
  const pending = isPending(row);
  const { failure, metadata, batch, event, againOf } = JSON.parse(
    String(row.extras),
  ) as ResultDetails;
  return {
    rid: String(row.rid),
    url: String(row.url),
    pushedUrl: String(row.pushed_url),
    cbStatus: Number(row.cb_status),
    originalStatus: Number(row.original_status),
    failure,
    metadata,
    batch,
    event,
    againOf,
    size: Number(row.size),
    state: pending ? 'pending' : (row.state as 'delivered' | 'failed'),
    createdAt: toDate(row.created_at),
    nextAttemptAt: pending ? toOptionalDate(row.due_at) : undefined,
    attempts: withAnswers(
      parseAttempts(row).slice(-maxAttempts),
      parseAnswers(toOptionalText(row.answers)),
    ),
  };
}

/** Reads the attempts that a row keeps. */
export function parseAttempts({ attempts }: SqlRow): DeliveryAttempt[] {
  const stored = JSON.parse(String(attempts)) as StoredAttempt[];
  return stored.map((each) => ({ ...each, startedAt: new Date(each.startedAt) }));
}

/** Reads the answers that a row keeps. */
export function parseAnswers(text: string | undefined): KeptAnswer[] {
  return text === undefined ? [] : (JSON.parse(text) as KeptAnswer[]);
}

/** Whether a row of deliveries is due or being sent. */
export function isPending({ state }: SqlRow): boolean {
  return state === 'due' || state === 'sending';
}
