import type { Delivery } from '../domain/delivery.ts';
import type { JobOutcome, Verdict } from './queue-store.ts';

type HeldOutcome = Extract<JobOutcome, { kind: 'delivery' }>;

/** Whether the outcome's delivery starts claimed, under the lease of the turn that writes it. */
export function isHeld(outcome: JobOutcome): outcome is HeldOutcome {
  return outcome.kind === 'delivery' && outcome.held;
}

/** The held deliveries among outcomes that a turn wrote at `now`, as they are claimed now. */
export function heldDeliveries(
  outcomes: readonly JobOutcome[],
  verdicts: readonly Verdict[],
  now: Date,
): Delivery[] {
  return outcomes.flatMap((outcome, index) => {
    if (verdicts[index] !== 'won' || !isHeld(outcome)) return [];
    const { record, crawlerId, callbackHeaders, traceparent } = outcome;
    return { ...record, crawlerId, callbackHeaders, traceparent, attempt: 1, createdAt: now };
  });
}
