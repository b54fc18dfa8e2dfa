import type { Crawler } from '../domain/crawler.ts';
import type { Delivery } from '../domain/delivery.ts';
import type { DeliveryOutcome, JobOutcome } from '../store/store.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { createFlights, FlightAbort } from './flights.ts';

/** What one lane needs beside the dispatcher's own. */
export interface DeliveryLaneDeps extends Pick<DispatcherDeps, 'postDelivery' | 'logger'> {
  readonly crawlerId: string;
  /** Whether the run still may act for its crawler. */
  readonly hasLease: () => boolean;
  /** Bytes of pages that wait in this process's memory for their delivery, over all runs. */
  readonly pages: { heldBytes: number };
  /** Called when a post has ended. */
  readonly onEnd: () => void;
}

/** What one turn of the run does for deliveries: it writes `outcomes` and `settlements`, and claims. */
export interface DeliveryTurn {
  /** The ends of crawls; those that are delivered at once, from memory, are marked as held. */
  readonly outcomes: readonly JobOutcome[];
  /** The ends of posts. */
  readonly settlements: readonly DeliveryOutcome[];
  /** How many due deliveries to claim, together of at most about `claimBytes`. */
  readonly claimLimit: number;
  readonly claimBytes: number;
}

/**
 * The deliveries of one crawler's run: which are in flight, which ends are not written yet, how many more may start. It never touches
 * the store: `begin` says what a turn is to write and to claim, `start` posts what came of it.
 */
export interface DeliveryLane {
  /** Posts in flight. */
  readonly inFlight: number;
  /** Ended posts that no turn has taken yet. */
  readonly unsettled: number;
  /** Takes the ends of crawls and of posts into a turn, which claims only if `claims`. */
  begin(ended: readonly JobOutcome[], crawler: Crawler, claims: boolean): DeliveryTurn;
  /** Posts the held results that were won, and what was claimed. */
  start(
    turn: DeliveryTurn,
    written: {
      readonly verdicts: readonly ('won' | 'lost')[];
      readonly claimed: readonly Delivery[];
    },
    crawler: Crawler,
    now: Date,
  ): void;
  abortAll(reason: FlightAbort): void;
}

// Pages beyond this wait for their delivery in the store instead of in memory. Eight of the largest pages fit.
const MAX_HELD_BYTES = 96 * 1024 * 1024;
// A claim of deliveries brings their pages into memory; this bounds one claim.
const MAX_CLAIM_BYTES = 8 * 1024 * 1024;
// Deliveries under way for one crawler: an endpoint takes at most 200 ms to answer, so few of them keep up with many crawls.
const DELIVERIES_PER_SLOT = 2;

/** Makes a lane in which nothing is in flight. */
export function createDeliveryLane(deps: DeliveryLaneDeps): DeliveryLane {
  const { crawlerId, pages, logger } = deps;
  const posts = createFlights(deps.onEnd);
  const settled: DeliveryOutcome[] = [];

  const canHold = (bytes: number): boolean => pages.heldBytes + bytes <= MAX_HELD_BYTES;

  function post(delivery: Delivery, crawler: Crawler): void {
    pages.heldBytes += delivery.body.byteLength;
    posts.start(delivery.rid, async (signal) => {
      try {
        // A process that slept through its lease (SIGSTOP, a suspended machine) must not post what others took over.
        if (!deps.hasLease()) throw new FlightAbort('released');
        settled.push(await deps.postDelivery(crawler, delivery, signal));
      } catch (error) {
        if (!signal.aborted && !(error instanceof FlightAbort)) {
          logger.error({ err: error, rid: delivery.rid }, 'a delivery broke off');
        }
        if (error instanceof FlightAbort && error.end === 'dropped') return;
        const { rid, attempt } = delivery;
        settled.push({ kind: 'release', rid, crawlerId, attempt, billed: false });
      } finally {
        pages.heldBytes -= delivery.body.byteLength;
      }
    });
  }

  return {
    get inFlight() {
      return posts.size;
    },
    get unsettled() {
      return settled.length;
    },
    begin(ended, crawler, claims) {
      let slots =
        crawler.delivery === 'webhook' ? crawler.concurrency * DELIVERIES_PER_SLOT - posts.size : 0;
      let bytes = 0;
      const outcomes = ended.map((outcome) => {
        if (outcome.kind !== 'delivery') return outcome;
        const size = outcome.record.body.byteLength;
        if (slots <= 0 || !canHold(bytes + size) || crawler.pausedByMonitor) return outcome;
        slots -= 1;
        bytes += size;
        return { ...outcome, held: true };
      });
      return {
        outcomes,
        settlements: settled.splice(0),
        claimLimit: claims && canHold(MAX_CLAIM_BYTES) ? Math.max(slots, 0) : 0,
        claimBytes: MAX_CLAIM_BYTES,
      };
    },
    start(turn, { verdicts, claimed }, crawler, now) {
      turn.outcomes.forEach((outcome, index) => {
        if (outcome.kind !== 'delivery' || !outcome.held || verdicts[index] !== 'won') return;
        const { record, callbackHeaders } = outcome;
        post({ ...record, crawlerId, callbackHeaders, attempt: 1, createdAt: now }, crawler);
      });
      for (const delivery of claimed) post(delivery, crawler);
    },
    abortAll: posts.abortAll,
  };
}
