import type { DeliverySummary } from '../../domain/delivery.ts';
import type { ResultDetails } from '../../domain/result.ts';
import { withAnswers } from '../rules.ts';
import type { DeliveryDocument } from './collections.ts';

/** The summary of a delivery, which must not be staged, with its last `maxAttempts` attempts. */
export function toDeliverySummary(
  document: Omit<DeliveryDocument, 'body'>,
  maxAttempts = Number.POSITIVE_INFINITY,
): DeliverySummary {
  const pending = isPending(document);
  const { failure, metadata, batch, event, againOf } = JSON.parse(document.extras) as ResultDetails;
  return {
    rid: document._id,
    url: document.url,
    pushedUrl: document.pushedUrl,
    cbStatus: document.cbStatus,
    originalStatus: document.originalStatus,
    failure,
    metadata,
    batch,
    event,
    againOf,
    size: document.size,
    state: pending ? 'pending' : (document.state as 'delivered' | 'failed'),
    createdAt: document.createdAt,
    nextAttemptAt: pending ? document.due : undefined,
    attempts: withAnswers(document.attempts.slice(-maxAttempts), document.answers),
  };
}

/** Whether a delivery is due or being sent. */
export function isPending({ state }: Pick<DeliveryDocument, 'state'>): boolean {
  return state === 'due' || state === 'sending';
}
