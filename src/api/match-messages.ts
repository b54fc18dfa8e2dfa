import {
  type ActOnMatchesRequest,
  MatchAction as WireAction,
  type MatchFilter as WireFilter,
} from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { defined } from '../domain/defined.ts';
import { invalidField } from '../domain/errors.ts';
import type { MatchFilter } from '../domain/match-filter.ts';
import type { MatchAction, MatchRequest } from '../service/batches/act-on-matches.ts';
import { nameOnWire } from './crawler-messages.ts';
import { toDeliveryState } from './delivery-messages.ts';
import { toCrawlOutcome, toQueuedState } from './listing-messages.ts';
import { fromPageToken } from './page-token.ts';
import { toRange } from './to-date.ts';

const ACTIONS: Readonly<Record<MatchAction, WireAction>> = {
  remove_jobs: WireAction.REMOVE_JOBS,
  remove_results: WireAction.REMOVE_RESULTS,
  replay: WireAction.REPLAY,
  push_again: WireAction.PUSH_AGAIN,
};

/** The longest text of a filter. */
const MAX_TEXT = 1_000;

/** A filter from the wire; undefined when it selects all. */
export function toMatchFilter(message: WireFilter | undefined): MatchFilter | undefined {
  if (message === undefined) return undefined;
  const text = (name: 'urlContains' | 'host' | 'batch' | 'reason'): string | undefined => {
    const value = message[name].trim();
    if (value.length > MAX_TEXT) {
      const field = `filter.${name === 'urlContains' ? 'url_contains' : name}`;
      throw invalidField(field, `${field} must have at most ${MAX_TEXT} characters.`);
    }
    return value === '' ? undefined : value;
  };
  const filter = defined({
    urlContains: text('urlContains'),
    host: text('host')?.toLowerCase(),
    batch: text('batch'),
    reason: text('reason'),
    cbStatus: message.cbStatus,
    originalStatus: message.originalStatus,
    ...toRange(message, 'filter.'),
  });
  return Object.keys(filter).length === 0 ? undefined : filter;
}

/** An action and what it is about, from the wire. */
export function toMatchRequest(request: ActOnMatchesRequest): MatchRequest {
  const action = nameOnWire(ACTIONS, request.action);
  return {
    action,
    jobState: toQueuedState('job_state', request.jobState),
    filter: toMatchFilter(request.filter) ?? {},
    deliveryState: toDeliveryState(request.deliveryState),
    outcome: toCrawlOutcome(request.outcome),
    isEstimate: request.estimate,
    cursor: fromPageToken(request.pageToken),
  };
}
