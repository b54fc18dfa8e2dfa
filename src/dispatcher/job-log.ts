import type { Delivery } from '../domain/delivery.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import type { Verdict } from '../store/finish-receipt.ts';
import type { DeliveryOutcome, JobOutcome } from '../store/store.ts';

/** One debug line for each change of a job's state, as the store has it. */
export interface JobLog {
  claimed(jobs: readonly QueuedJob[]): void;
  /** A lost end changed nothing, because the job was removed or claimed again. */
  ended(outcomes: readonly JobOutcome[], verdicts: readonly Verdict[]): void;
  deliveriesClaimed(deliveries: readonly Delivery[]): void;
  deliveriesEnded(outcomes: readonly DeliveryOutcome[]): void;
}

/** Makes the log of one crawler's jobs; undefined when debug lines are not kept. */
export function createJobLog(logger: Logger, crawlerId: string): JobLog | undefined {
  if (logger.isLevelEnabled?.('debug') === false) return undefined;
  const crawler = crawlerId;
  return {
    claimed(jobs) {
      for (const { rid, attempt, retry } of jobs) {
        logger.debug({ rid, crawler, attempt, retry }, 'a job was claimed');
      }
    },
    ended(outcomes, verdicts) {
      for (const [index, { rid, attempt, kind: end }] of outcomes.entries()) {
        logger.debug({ rid, crawler, attempt, end, verdict: verdicts[index] }, 'a crawl ended');
      }
    },
    deliveriesClaimed(deliveries) {
      for (const { rid, attempt } of deliveries) {
        logger.debug({ rid, crawler, attempt }, 'a delivery was claimed');
      }
    },
    deliveriesEnded(outcomes) {
      for (const { rid, attempt, kind: end } of outcomes) {
        logger.debug({ rid, crawler, attempt, end }, 'a delivery ended');
      }
    },
  };
}
