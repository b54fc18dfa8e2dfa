import type { Crawler } from '../domain/crawler.ts';
import type { Delivery, EndpointAnswer } from '../domain/delivery.ts';
import type { DeliveryOutcome, JobOutcome } from '../store/store.ts';
import type { DeliveryPaces, DeliverySlot, PacedLane } from './delivery-paces.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { MAX_POSTS_PER_ENDPOINT } from './endpoint-pace.ts';
import { createFlights, FlightAbort } from './flights.ts';

/** What one lane needs beside the dispatcher's own. */
export interface DeliveryLaneDeps extends Pick<DispatcherDeps, 'postDelivery' | 'logger'> {
  readonly crawlerId: string;
  /** Whether the run still may act for its crawler. */
  readonly hasLease: () => boolean;
  /** Bytes of pages that wait in this process's memory for their delivery, over all runs. */
  readonly pages: { heldBytes: number };
  readonly paces: DeliveryPaces;
  /** Called when a post has ended, and when there is room for one that waited. */
  readonly onChange: () => void;
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
  /** For each post that may come of this turn. */
  readonly slots: DeliverySlot[];
}

/**
 * The deliveries of one crawler's run: which are in flight, which ends are not written yet, how many more may start. It never touches
 * the store: `begin` says what a turn is to write and to claim, `start` posts what came of it. A page is in memory only while it has
 * the right to be posted (see {@link DeliveryPaces}); all others wait in the store.
 */
export interface DeliveryLane {
  /** Posts in flight. */
  readonly inFlight: number;
  /** Ended posts that no turn has taken yet. */
  readonly unsettled: number;
  /** Whether deliveries that are due can be posted now, so that a turn is worth while. */
  readonly hasRoom: boolean;
  /** Whether the last turn had more to post than it got room for. */
  readonly isWaiting: boolean;
  /** Until when the endpoint takes nothing; undefined when it does, or nothing waits. */
  pausedUntil(): Date | undefined;
  /** There may be due deliveries in the store: the next turn claims. */
  look(): void;
  /**
   * Takes the ends of crawls and of posts into a turn, which claims only if `claims`. Each turn that was begun ends with
   * `giveUp`.
   */
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
  /** Gives back the slots that nothing came of; after `start`, or instead of it. */
  giveUp(turn: DeliveryTurn): void;
  abortAll(reason: FlightAbort): void;
  /** Waits for room no longer. */
  close(): void;
}

// Pages beyond this wait for their delivery in the store instead of in memory. Eight of the largest pages fit.
const MAX_HELD_BYTES = 96 * 1024 * 1024;
// A claim of deliveries brings their pages into memory; this bounds one claim.
const MAX_CLAIM_BYTES = 8 * 1024 * 1024;
// More would keep slots that others could use for as long as the claim takes.
const MAX_CLAIM = 64;

/** Makes a lane in which nothing is in flight. */
export function createDeliveryLane(deps: DeliveryLaneDeps): DeliveryLane {
  const { crawlerId, pages, logger } = deps;
  const posts = createFlights(deps.onChange);
  const settled: DeliveryOutcome[] = [];
  let paced: PacedLane | undefined;
  let hasRoom = false;
  let waiting = false;
  /** Whether the store may hold due deliveries. */
  let backlog = true;
  /** Whose turn the odd slot is, when new results and due deliveries both want it. */
  let newFirst = true;

  function take(crawler: Crawler, wanted: number): DeliverySlot[] {
    paced ??= deps.paces.open({ accountId: crawler.accountId, crawlerId }, () => {
      hasRoom = true;
      deps.onChange();
    });
    hasRoom = false;
    const slots = paced.take(crawler.callbackUrl ?? '', wanted);
    waiting = slots.length < wanted;
    return slots;
  }

  const canHold = (bytes: number): boolean => pages.heldBytes + bytes <= MAX_HELD_BYTES;

  function post(delivery: Delivery, crawler: Crawler, slot: DeliverySlot): void {
    pages.heldBytes += delivery.body.byteLength;
    posts.start(delivery.rid, async (signal) => {
      let answer: EndpointAnswer | undefined;
      try {
        // A process that slept through its lease (SIGSTOP, a suspended machine) must not post what others took over.
        if (!deps.hasLease()) throw new FlightAbort('released');
        const end = await deps.postDelivery(crawler, delivery, signal);
        answer = end.answer;
        settled.push(end.outcome);
      } catch (error) {
        if (!signal.aborted && !(error instanceof FlightAbort)) {
          logger.error({ err: error, rid: delivery.rid }, 'a delivery broke off');
        }
        if (error instanceof FlightAbort && error.end === 'dropped') return;
        const { rid, attempt } = delivery;
        settled.push({ kind: 'release', rid, crawlerId, attempt, billed: false });
      } finally {
        slot.end(answer);
        pages.heldBytes -= delivery.body.byteLength;
      }
    });
  }

  /** How many of the slots are for new results; the others are for what is due in the store. Both take turns. */
  function shareOfNew(slots: number, wantNew: number, wantDue: number): number {
    if (wantNew + wantDue <= slots) return wantNew;
    if (slots % 2 === 1) newFirst = !newFirst;
    const half = newFirst ? Math.floor(slots / 2) : Math.ceil(slots / 2);
    return Math.min(wantNew, Math.max(half, slots - wantDue));
  }

  function holdable(ended: readonly JobOutcome[], most: number): ReadonlySet<JobOutcome> {
    let bytes = 0;
    const held = new Set<JobOutcome>();
    for (const outcome of ended) {
      if (outcome.kind !== 'delivery') continue;
      bytes += outcome.record.body.byteLength;
      if (held.size === most || !canHold(bytes)) break;
      held.add(outcome);
    }
    return held;
  }

  function giveUp(turn: DeliveryTurn): void {
    for (const slot of turn.slots.splice(0)) slot.end(undefined);
  }

  return {
    get inFlight() {
      return posts.size;
    },
    get unsettled() {
      return settled.length;
    },
    get hasRoom() {
      return hasRoom;
    },
    get isWaiting() {
      return waiting;
    },
    pausedUntil: () => paced?.pausedUntil(),
    look() {
      backlog = true;
    },
    begin(ended, crawler, claims) {
      const free = (crawler.deliveryConcurrency || MAX_POSTS_PER_ENDPOINT) - posts.size;
      const delivers = crawler.delivery === 'webhook' && !crawler.pausedByMonitor && free > 0;
      const wantNew = delivers ? holdable(ended, free).size : 0;
      const wantDue =
        delivers && claims && backlog && canHold(MAX_CLAIM_BYTES) ? Math.min(MAX_CLAIM, free) : 0;
      const wanted = Math.min(free, wantNew + wantDue);
      const slots = take(crawler, delivers ? wanted : 0);
      const ofNew = shareOfNew(slots.length, wantNew, wantDue);
      const held = holdable(ended, ofNew);
      const outcomes = ended.map((each) => (held.has(each) ? { ...each, held: true } : each));
      if (ended.some((each) => each.kind === 'delivery' && !held.has(each))) backlog = true;
      return {
        outcomes,
        settlements: settled.splice(0),
        claimLimit: Math.min(slots.length - held.size, wantDue),
        claimBytes: MAX_CLAIM_BYTES,
        slots,
      };
    },
    start(turn, { verdicts, claimed }, crawler, now) {
      const { slots } = turn;
      turn.outcomes.forEach((outcome, index) => {
        if (outcome.kind !== 'delivery' || !outcome.held || verdicts[index] !== 'won') return;
        const slot = slots.pop();
        if (slot === undefined) throw new Error('a result is held that has no slot');
        const { record, callbackHeaders } = outcome;
        post({ ...record, crawlerId, callbackHeaders, attempt: 1, createdAt: now }, crawler, slot);
      });
      for (const delivery of claimed) {
        const slot = slots.pop();
        if (slot === undefined) throw new Error('a delivery was claimed that has no slot');
        post(delivery, crawler, slot);
      }
      if (turn.claimLimit > 0 && claimed.length === 0) backlog = false;
    },
    giveUp,
    abortAll: posts.abortAll,
    close: () => paced?.leave(),
  };
}
