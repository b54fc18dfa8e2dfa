import { defined } from '../domain/defined.ts';
import type { DeliveryAttempt, DeliverySummary } from '../domain/delivery.ts';
import type { CrawlRecord } from '../domain/result.ts';

/** The answers of callback URLs that a delivery keeps: the latest. */
export const MAX_KEPT_ANSWERS = 5;

/** What an attempt was answered. */
export interface KeptAnswer {
  readonly attempt: number;
  readonly text: string;
}

/** A delivery as the stores keep it, without its page. */
export interface KeptDelivery
  extends Omit<CrawlRecord, 'body'>,
    Pick<DeliverySummary, 'size' | 'createdAt'> {
  readonly state: 'due' | 'sending' | 'delivered' | 'failed';
  readonly due: Date | undefined;
  readonly attempts: readonly Omit<DeliveryAttempt, 'answer'>[];
  readonly answers: readonly KeptAnswer[] | undefined;
}

/** Whether a delivery is due or being sent. */
export function isPending({ state }: { readonly state?: unknown }): boolean {
  return state === 'due' || state === 'sending';
}

/** The summary of a delivery, with its last `maxAttempts` attempts and the answers that are kept. */
export function toSummary(
  { details, state, due, attempts, answers = [], ...kept }: KeptDelivery,
  maxAttempts = Number.POSITIVE_INFINITY,
): DeliverySummary {
  const { rid, url, pushedUrl, cbStatus, originalStatus, size, createdAt } = kept;
  const { failure, metadata, batch, event, againOf } = details;
  const texts = new Map(answers.map(({ attempt, text }) => [attempt, text]));
  const pending = isPending({ state });
  return {
    rid,
    url,
    pushedUrl,
    cbStatus,
    originalStatus,
    size,
    createdAt,
    failure,
    metadata,
    batch,
    event,
    againOf,
    state: pending ? 'pending' : (state as 'delivered' | 'failed'),
    nextAttemptAt: pending ? due : undefined,
    attempts: attempts
      .slice(-maxAttempts)
      .map((each) => ({ ...each, ...defined({ answer: texts.get(each.attempt) }) })),
  };
}
