import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { Delivery, EndpointAnswer } from '../../domain/delivery.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { nextDelivery } from '../../domain/retry-schedule.ts';
import type { DeliveryOutcome } from '../../store/store.ts';
import type { Webhook } from '../../webhook/webhook.ts';

/** How long a delivered page can be replayed. */
const REPLAY_MS = DAY_MS;

/** What delivering works with. */
export interface AttemptDeliveryDeps {
  readonly webhook: Pick<Webhook, 'deliver'>;
  readonly clock: Clock;
  /** Waits between attempts, milliseconds. */
  readonly schedule: readonly number[];
  readonly random?: () => number;
}

/**
 * Makes the use case: one attempt, and the outcome it leads to. A `Retry-After` of the endpoint
 * makes the wait longer.
 */
export function createAttemptDelivery(deps: AttemptDeliveryDeps) {
  const random = deps.random ?? Math.random;
  return async (
    crawler: Crawler,
    delivery: Delivery,
    signal: AbortSignal,
  ): Promise<{ outcome: DeliveryOutcome; answer: EndpointAnswer }> => {
    const { acknowledged, log, answer } = await deps.webhook.deliver(crawler, delivery, signal);
    const now = deps.clock.now();
    const { rid, crawlerId, attempt } = delivery;
    // The crawl was billed with its result; every further attempt is billed like a crawl.
    const isEvent = delivery.details.event !== undefined;
    const common = { rid, crawlerId, attempt, log, isEvent, billed: attempt > 1 && !isEvent };
    if (acknowledged) {
      const expiresAt = new Date(now.getTime() + REPLAY_MS);
      return { outcome: { ...common, kind: 'delivered', expiresAt }, answer };
    }
    const scheduled = nextDelivery(deps.schedule, attempt, now, random());
    if (scheduled === undefined) return { outcome: { ...common, kind: 'failed' }, answer };
    const askedMs = answer.kind === 'overloaded' ? (answer.retryAfterMs ?? 0) : 0;
    const dueAt = new Date(Math.max(scheduled.getTime(), now.getTime() + askedMs));
    return { outcome: { ...common, kind: 'retry', dueAt }, answer };
  };
}
