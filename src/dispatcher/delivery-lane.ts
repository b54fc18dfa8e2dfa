import type { Crawler } from '../domain/crawler.ts';
import type { Delivery, EndpointAnswer } from '../domain/delivery.ts';
import { deliveryModes } from '../domain/delivery-mode.ts';
import type { FairPool, Grant } from '../fairness/fair-pool.ts';
import type { DeliveryOutcome, JobOutcome } from '../store/store.ts';
import type { DeliveryPaces, DeliverySlot, PacedLane } from './delivery-paces.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { MAX_POSTS_PER_ENDPOINT } from './endpoint-pace.ts';
import { createInFlight, WorkAborted } from './in-flight.ts';

/** What one lane needs beside the dispatcher's own. */
export interface DeliveryLaneDeps extends Pick<DispatcherDeps, 'postDelivery' | 'logger'> {
  readonly crawlerId: string;
  /** Whether the run still may act for its crawler. */
  readonly hasLease: () => boolean;
  /** Bytes of the whole process: pages that are posted count in it. */
  readonly memory: FairPool;
  readonly paces: DeliveryPaces;
  /** Called when a post has ended, and when there is room for one that waited. */
  readonly onChange: () => void;
}

/**
 * What one turn of the run does for deliveries: it writes `outcomes` and `settlements`, and claims.
 */
export interface DeliveryTurn {
  /** The ends of crawls; those that are delivered at once, from memory, are marked as held. */
  readonly outcomes: readonly JobOutcome[];
  /** The ends of posts. */
  readonly settlements: readonly DeliveryOutcome[];
  /** How many due deliveries to claim, together of at most about `claimBytes`. */
  readonly claimLimit: number;
  readonly claimBytes: number;
  /** Memory for what is claimed. */
  readonly room: Grant | undefined;
  /** For each post that may come of this turn. */
  readonly slots: DeliverySlot[];
}

/**
 * The deliveries of one crawler's run: which are in flight, which ends are not written yet, how
 * many more may start. It never touches the store: `begin` says what a turn is to write and to
 * claim, `start` posts what came of it. A page is in memory only while it has the right to be
 * posted (see {@link DeliveryPaces}); all others wait in the store.
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
   * Takes the ends of crawls and of posts into a turn, which claims only if `claims`. Each turn
   * that was begun ends with `giveUp`.
   */
  begin(ended: readonly JobOutcome[], crawler: Crawler, claims: boolean): DeliveryTurn;
  /** Posts the held results that were won, and the deliveries that were claimed. */
  start(
    turn: DeliveryTurn,
    written: {
      /** The turn's held results that were won. */
      readonly held: readonly Delivery[];
      readonly claimed: readonly Delivery[];
      /** Hands over the memory that the page of a held result holds. */
      readonly keep: (rid: string) => readonly Grant[];
    },
    crawler: Crawler,
  ): void;
  /** Gives back the slots that nothing came of; after `start`, or instead of it. */
  giveUp(turn: DeliveryTurn): void;
  abortAll(reason: WorkAborted): void;
  /** Waits for room no longer. */
  close(): void;
}

// A claim of deliveries brings their pages into memory; this bounds one claim.
const MAX_CLAIM_BYTES = 8 * 1024 * 1024;
// With less than this a claim would bring one page at a time.
const MIN_CLAIM_BYTES = 256 * 1024;
// More would keep slots that others could use for as long as the claim takes.
const MAX_CLAIM = 64;

/** Makes a lane in which nothing is in flight. */
export function createDeliveryLane(deps: DeliveryLaneDeps): DeliveryLane {
  const { crawlerId, memory, logger } = deps;
  const posts = createInFlight(deps.onChange);
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

  function post(
    delivery: Delivery,
    crawler: Crawler,
    slot: DeliverySlot,
    held: readonly Grant[],
  ): void {
    posts.start(delivery.rid, async (signal) => {
      let answer: EndpointAnswer | undefined;
      try {
        // A process that slept through its lease (SIGSTOP, a suspended machine) must not post what
        // others took over.
        if (!deps.hasLease()) throw new WorkAborted('released');
        const end = await deps.postDelivery(crawler, delivery, signal);
        answer = end.answer;
        settled.push(end.outcome);
      } catch (error) {
        if (!signal.aborted && !(error instanceof WorkAborted)) {
          logger.error({ err: error, rid: delivery.rid }, 'a delivery broke off');
        }
        if (error instanceof WorkAborted && error.end === 'dropped') return;
        const { rid, attempt } = delivery;
        settled.push({ kind: 'release', rid, crawlerId, attempt, billed: false });
      } finally {
        slot.end(answer);
        for (const grant of held) grant.release();
      }
    });
  }

  /**
   * How many of the slots are for new results; the others are for what is due in the store. Both
   * take turns.
   */
  function shareOfNew(slots: number, wantNew: number, wantDue: number): number {
    if (wantNew + wantDue <= slots) return wantNew;
    if (slots % 2 === 1) newFirst = !newFirst;
    const half = newFirst ? Math.floor(slots / 2) : Math.ceil(slots / 2);
    return Math.min(wantNew, Math.max(half, slots - wantDue));
  }

  function holdable(ended: readonly JobOutcome[], most: number): ReadonlySet<JobOutcome> {
    // Pages in the way of others that wait for memory go to the store; they come back one by one.
    if (memory.waiting > 0) return new Set();
    return new Set(ended.filter(({ kind }) => kind === 'delivery').slice(0, most));
  }

  /** Memory for a claim; undefined when there is too little of it. */
  function roomToClaim({ accountId }: Crawler): Grant | undefined {
    const claimant = { accountId, crawlerId };
    const bytes = Math.min(MAX_CLAIM_BYTES, memory.available(claimant));
    return bytes < MIN_CLAIM_BYTES ? undefined : memory.tryAcquire(claimant, bytes);
  }

  function giveUp(turn: DeliveryTurn): void {
    turn.room?.release();
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
      const mode = deliveryModes[crawler.delivery];
      const delivers = mode.delivers && !crawler.pausedByMonitor && free > 0;
      const wantNew = delivers ? holdable(ended, free).size : 0;
      const room = delivers && claims && backlog ? roomToClaim(crawler) : undefined;
      const wantDue = room === undefined ? 0 : Math.min(MAX_CLAIM, free);
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
        claimBytes: room?.amount ?? 0,
        room,
        slots,
      };
    },
    start(turn, { held, claimed, keep }, crawler) {
      const { slots, room } = turn;
      for (const delivery of held) {
        const slot = slots.pop();
        if (slot === undefined) throw new Error('a result is held that has no slot');
        post(delivery, crawler, slot, keep(delivery.rid));
      }
      for (const delivery of claimed) {
        const slot = slots.pop();
        if (slot === undefined) throw new Error('a delivery was claimed that has no slot');
        const bytes = room?.split(delivery.body.byteLength);
        post(delivery, crawler, slot, bytes === undefined ? [] : [bytes]);
      }
      if (turn.claimLimit > 0 && claimed.length === 0) backlog = false;
    },
    giveUp,
    abortAll: posts.abortAll,
    close: () => paced?.leave(),
  };
}
