import type { DeliveryAttempt, DeliverySummary } from '../../domain/delivery.ts';
import { type KeptAnswer, type KeptDelivery, toSummary } from '../kept-delivery.ts';
import { toCrawlFields } from './pages.ts';
import { type SqlRow, toDate, toOptionalDate, toOptionalText } from './sql.ts';

/** An attempt as a row keeps it. */
export type StoredAttempt = Omit<DeliveryAttempt, 'startedAt'> & { readonly startedAt: number };

/** The columns that {@link toDeliverySummary} reads. */
export const SUMMARY_COLUMNS =
  'rid, crawler_id, state, due_at, created_at, url, pushed_url, cb_status, original_status, content_type, extras, size, attempts';

/** The summary of a row of deliveries, with its last `maxAttempts` attempts and the answers that it has. */
export function toDeliverySummary(row: SqlRow, maxAttempts?: number): DeliverySummary {
  return toSummary(
    {
      ...toCrawlFields(row),
      size: Number(row.size),
      state: row.state as KeptDelivery['state'],
      due: toOptionalDate(row.due_at),
      createdAt: toDate(row.created_at),
      attempts: parseAttempts(row),
      answers: parseAnswers(toOptionalText(row.answers)),
    },
    maxAttempts,
  );
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
