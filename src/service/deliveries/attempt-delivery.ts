import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { Delivery, EndpointAnswer } from '../../domain/delivery.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { nextDelivery } from '../../domain/retry-schedule.ts';
import type { DeliveryOutcome } from '../../store/store.ts';
import type { DeliveryResult, Webhook } from '../../webhook/webhook.ts';

/** How long a delivered page can be replayed. */
const REPLAY_MS = DAY_MS;

/** What delivering works with. */
export interface AttemptDeliveryDeps {
  readonly webhook: Pick<Webhook, 'deliver' | 'deliverTogether'>;
  readonly clock: Clock;
  /** Waits between attempts, milliseconds. */
  readonly schedule: readonly number[];
  readonly random?: () => number;
}

/** What became of deliveries that were attempted together. */
export interface AttemptedDeliveries {
  /** Those of the first deliveries, in order; the others were not sent. */
  readonly outcomes: readonly DeliveryOutcome[];
  /** How the endpoint answered the last POST. */
  readonly answer: EndpointAnswer;
  /** Whether they were too long for one POST. */
  readonly isTooLong: boolean;
}

/**
 * Makes the use case: one attempt of deliveries that share a POST, and the outcomes it leads to. A
 * `Retry-After` of the endpoint makes the wait longer. An event is delivered alone, in the form of one
 * result.
 */
export function createAttemptDelivery(deps: AttemptDeliveryDeps) {
  const { webhook } = deps;
  const random = deps.random ?? Math.random;

  function outcomeOf(delivery: Delivery, result: DeliveryResult): DeliveryOutcome {
    const { acknowledged, log, answer } = result;
    const now = deps.clock.now();
    const { rid, crawlerId, attempt, wasAttempted = false } = delivery;
    // The crawl was billed with its result; every further attempt is billed like a crawl. One that a
    // crash has interrupted may never have been sent.
    const isEvent = delivery.details.event !== undefined;
    const common = { rid, crawlerId, attempt, log, isEvent, billed: wasAttempted && !isEvent };
    // Soon, as the POST has waited for a socket already.
    if (answer.kind === 'no_socket') {
      return { rid, crawlerId, attempt, kind: 'release', dueAt: now, billed: false };
    }
    if (acknowledged) {
      return { ...common, kind: 'delivered', expiresAt: new Date(now.getTime() + REPLAY_MS) };
    }
    const scheduled = nextDelivery(deps.schedule, attempt, now, random());
    if (scheduled === undefined) return { ...common, kind: 'failed' };
    const askedMs = answer.kind === 'overloaded' ? (answer.retryAfterMs ?? 0) : 0;
    const dueAt = new Date(Math.max(scheduled.getTime(), now.getTime() + askedMs));
    return { ...common, kind: 'retry', dueAt };
  }

  return async (
    crawler: Crawler,
    deliveries: readonly Delivery[],
    signal: AbortSignal,
  ): Promise<AttemptedDeliveries> => {
    const [first] = deliveries as readonly [Delivery];
    const isAlone = crawler.deliverBatch === undefined || first.details.event !== undefined;
    const { results, isTooLong } = isAlone
      ? { results: [await webhook.deliver(crawler, first, signal)], isTooLong: false }
      : await webhook.deliverTogether(crawler, deliveries, signal);
    const outcomes = results.map((each, at) => outcomeOf(deliveries[at] as Delivery, each));
    return { outcomes, answer: results.at(-1)?.answer ?? { kind: 'other' }, isTooLong };
  };
}
