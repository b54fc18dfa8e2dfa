import type { Delivery } from '../domain/delivery.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { Logger } from '../domain/logger.ts';
import type { DeliveryOutcome, JobOutcome, Verdict } from '../store/store.ts';

/** One debug line for each change of a job's state. */
export interface JobLog {
  started(job: QueuedJob): void;
  /** A lost end changed nothing, because the job was removed or claimed again. */
  ended(outcomes: readonly JobOutcome[], verdicts: readonly Verdict[]): void;
  deliveriesClaimed(deliveries: readonly Delivery[]): void;
  deliveriesEnded(outcomes: readonly DeliveryOutcome[]): void;
}

/** Makes the log of one crawler's jobs. It writes nothing while debug lines are not kept. */
export function createJobLog(logger: Logger, crawlerId: string): JobLog {
  const isOff = (): boolean => logger.isLevelEnabled?.('debug') === false;
  const crawler = crawlerId;
  return {
    started({ rid, attempt, retry }) {
      logger.debug({ rid, crawler, attempt, retry }, 'a crawl started');
    },
    ended(outcomes, verdicts) {
      if (isOff()) return;
      for (const [index, { rid, attempt, kind: end }] of outcomes.entries()) {
        logger.debug({ rid, crawler, attempt, end, verdict: verdicts[index] }, 'a crawl ended');
      }
    },
    deliveriesClaimed(deliveries) {
      if (isOff()) return;
      for (const { rid, attempt } of deliveries) {
        logger.debug({ rid, crawler, attempt }, 'a delivery was claimed');
      }
    },
    deliveriesEnded(outcomes) {
      if (isOff()) return;
      for (const { rid, attempt, kind: end } of outcomes) {
        logger.debug({ rid, crawler, attempt, end }, 'a delivery ended');
      }
    },
  };
}
