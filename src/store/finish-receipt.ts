import type { Delivery } from '../domain/delivery.ts';
import type { JobOutcome, Lease } from './queue-store.ts';

/** The result of writing outcomes. */
export interface FinishReceipt {
  /** One for each outcome, in order. */
  readonly verdicts: readonly Verdict[];
  /** The held deliveries that were won, as they are now claimed under the caller's lease. */
  readonly deliveries: readonly Delivery[];
}

/**
 * Whether a write found its job or delivery in the attempt it named; a lost one changed nothing.
 */
export type Verdict = 'won' | 'lost';

/**
 * The receipt for outcomes that were written at `now` under `lease`; undefined when without one.
 */
export function finishReceipt(
  outcomes: readonly JobOutcome[],
  verdicts: readonly Verdict[],
  now: Date,
  lease: Lease | undefined,
): FinishReceipt {
  const deliveries = outcomes.flatMap((outcome, index) => {
    if (verdicts[index] !== 'won' || !isHeld(outcome, lease)) return [];
    const { record, crawlerId, callbackHeaders, traceparent } = outcome;
    return { ...record, crawlerId, callbackHeaders, traceparent, attempt: 1, createdAt: now };
  });
  return { verdicts, deliveries };
}

/** Whether the outcome's delivery starts claimed; without a lease nobody could hold it. */
export function isHeld(
  outcome: JobOutcome,
  lease: Pick<Lease, 'epoch'> | undefined,
): outcome is Extract<JobOutcome, { kind: 'delivery' }> {
  return outcome.kind === 'delivery' && outcome.held && lease !== undefined;
}
