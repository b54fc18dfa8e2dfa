import type { Clock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import type { Delivery } from '../domain/delivery.ts';
import { nextDelivery } from '../domain/retry-schedule.ts';
import type { DeliveryOutcome } from '../store/store.ts';
import type { Webhook } from '../webhook/webhook.ts';

/** How long a delivered page can be replayed. */
const REPLAY_MS = 24 * 60 * 60 * 1_000;

/** What delivering works with. */
export interface PostDeliveryDeps {
  readonly webhook: Pick<Webhook, 'deliver'>;
  readonly clock: Clock;
  /** Waits between attempts, milliseconds. */
  readonly schedule: readonly number[];
  readonly random?: () => number;
}

/** Makes the use case: one attempt, and what follows from its end. */
export function createPostDelivery(deps: PostDeliveryDeps) {
  const random = deps.random ?? Math.random;
  return async (
    crawler: Crawler,
    delivery: Delivery,
    signal: AbortSignal,
  ): Promise<DeliveryOutcome> => {
    const { acknowledged, log } = await deps.webhook.deliver(crawler, delivery, signal);
    const now = deps.clock.now();
    const { rid, crawlerId, attempt } = delivery;
    // The crawl was billed with its result; every further attempt is billed like a crawl.
    const outcome = { rid, crawlerId, attempt, log, billed: attempt > 1 };
    if (acknowledged) {
      return { ...outcome, kind: 'delivered', expiresAt: new Date(now.getTime() + REPLAY_MS) };
    }
    const dueAt = nextDelivery(deps.schedule, attempt, now, random());
    return dueAt === undefined
      ? { ...outcome, kind: 'failed' }
      : { ...outcome, kind: 'retry', dueAt };
  };
}
