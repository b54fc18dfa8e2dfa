import { type DeliverySummary, deliveryReason } from '../domain/delivery.ts';
import { isMatch, type Matchable, type MatchFilter } from '../domain/match-filter.ts';
import type { JobSummary, ResultSummary } from './listing-store.ts';

// Which rows of a listing a filter selects, in both stores.

/** Whether the filter, if there is one, selects the job. */
export function isMatchingJob(filter: MatchFilter | undefined, job: JobSummary): boolean {
  const { url, batch, lastFailure, createdAt } = job;
  const statuses = { cbStatus: undefined, originalStatus: undefined };
  return matches(filter, { url, batch, reasons: [lastFailure], ...statuses, at: createdAt });
}

/** Whether the filter, if there is one, selects the result. */
export function isMatchingResult(filter: MatchFilter | undefined, result: ResultSummary): boolean {
  const { pushedUrl: url, details, cbStatus, originalStatus, storedAt } = result;
  const { batch, failure } = details;
  return matches(filter, {
    url,
    batch,
    reasons: [failure],
    cbStatus,
    originalStatus,
    at: storedAt,
  });
}

/** Whether the filter, if there is one, selects the delivery. */
export function isMatchingDelivery(
  filter: MatchFilter | undefined,
  delivery: DeliverySummary,
): boolean {
  const { pushedUrl: url, batch, failure, cbStatus, originalStatus, createdAt } = delivery;
  const reasons = [failure, deliveryReason(delivery)];
  return matches(filter, { url, batch, reasons, cbStatus, originalStatus, at: createdAt });
}

const matches = (filter: MatchFilter | undefined, row: Matchable): boolean =>
  filter === undefined || isMatch(filter, row);
