import type { Crawler } from '../domain/crawler.ts';
import type { Delivery, EndpointAnswer } from '../domain/delivery.ts';
import { deliveryModes } from '../domain/delivery-mode.ts';
import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import type { DeliveryOutcome, JobOutcome } from '../store/store.ts';
import type { DeliveryPaces } from './delivery-paces.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import type { DeliverySlot } from './endpoint.ts';
import { MAX_POSTS_PER_ENDPOINT } from './endpoint-pace.ts';
import { createInFlight, WorkAborted } from './in-flight.ts';
import type { PacedLane } from './paced-lane.ts';

/** What the lane works with. */
export interface DeliveryLaneDeps extends Pick<DispatcherDeps, 'postDelivery' | 'logger'> {
  readonly crawlerId: string;
  /** The process's bytes in flight, which include the pages that are being posted. */
  readonly memory: FairPool;
  readonly paces: DeliveryPaces;
  /**
   * Whether the lane posts only results of its own crawls, and none of a crawler that limits its
   * posts at once: the lead posts those.
   */
  readonly isHelper: boolean;
  /** Called when a post has ended, or when there is room for one that waited. */
  readonly onChange: () => void;
}

/**
 * What one turn of the run does for deliveries: it writes `outcomes` and `settlements`, and claims.
 */
export interface DeliveryTurn {
  /** Ended crawls; those that are delivered at once, from memory, are marked as held. */
  readonly outcomes: readonly JobOutcome[];
  /** Whether some of the results that end here are delivered later, from the store. */
  readonly addsBacklog: boolean;
  /** Ended posts. */
  readonly settlements: readonly DeliveryOutcome[];
  /** How many due deliveries to claim, with pages of at most about `claimBytes` together. */
  readonly claimLimit: number;
  readonly claimBytes: number;
  /** Memory for the claimed pages. */
  readonly room: Grant | undefined;
  /** One for each post that may start after this turn. */
  readonly slots: DeliverySlot[];
}

/**
 * The deliveries of one crawler's run: those in flight, those that have ended and are not written
 * yet, and how many more may start. It does not call the store: `begin` returns what a turn has to
 * write and to claim, `start` posts the deliveries that the turn won and claimed. A page is in
 * memory only while it has a slot to be posted (see {@link DeliveryPaces}); all others wait in the
 * store.
 */
export interface DeliveryLane {
  /** Posts in flight. */
  readonly inFlight: number;
  /** Ended posts that no turn has taken yet. */
  readonly unsettled: number;
  /** Whether there is room again for deliveries that waited, so a turn has something to do. */
  readonly hasRoom: boolean;
  /** Whether the last turn had more to post than it got room for, as far as it knows. */
  readonly isWaiting: boolean;
  /** Until when the endpoint is sent nothing; undefined when it is, or when nothing waits. */
  pausedUntil(): Date | undefined;
  /** When the next delivery falls due in the store, as far as is known. */
  readonly nextDueAt: Date | undefined;
  /** Makes the next turn claim, because the store may have due deliveries. */
  expectBacklog(): void;
  /**
   * Takes ended crawls and ended posts into a turn, which claims only if `claims`. Every turn that
   * was begun ends with `releaseUnused`.
   */
  begin(ended: readonly JobOutcome[], crawler: Crawler, claims: boolean): DeliveryTurn;
  /** Posts the held results that were won, and the deliveries that were claimed. */
  start(
    turn: DeliveryTurn,
    written: {
      /** The turn's held results that were won. */
      readonly held: readonly Delivery[];
      readonly claimed: readonly Delivery[];
      /** When the next delivery falls due, if none was claimed. */
      readonly nextDeliveryAt: Date | undefined;
      /** Hands over the memory that the page of a held result holds. */
      readonly keep: (rid: string) => readonly Grant[];
    },
    crawler: Crawler,
  ): void;
  /** Takes the settlements of a turn that failed into the next one. */
  fail(turn: DeliveryTurn): void;
  /** Gives back the slots that no post uses; after `start`, or instead of it. */
  releaseUnused(turn: DeliveryTurn): void;
  abortAll(reason: WorkAborted): void;
  /** Stops waiting for room. */
  close(): void;
}

/** Most bytes of pages that one claim brings into memory. */
const MAX_CLAIM_BYTES = 4 * 1024 * 1024;
/** With less memory a claim would bring one page at a time. */
const MIN_CLAIM_BYTES = 256 * 1024;
/** More would keep slots from others for as long as the claim takes. */
const MAX_CLAIM = 64;

/** Makes a lane in which nothing is in flight. */
export function createDeliveryLane(deps: DeliveryLaneDeps): DeliveryLane {
  const { crawlerId, memory, logger, isHelper } = deps;
  const posts = createInFlight(deps.onChange);
  const settled: DeliveryOutcome[] = [];
  let paced: PacedLane | undefined;
  let hasRoom = false;
  let waiting = false;
  /** Whether the store may hold due deliveries. */
  let backlog = true;
  let nextDueAt: Date | undefined;
  let memoryWait: AbortController | undefined;
  /** Memory that the lane has waited for, for its next claim. */
  let grantedRoom: Grant | undefined;
  /** Whether new results get the odd slot, when due deliveries want it too. */
  let newFirst = true;

  /** A delivery that goes back to the store is due there at that moment, or at once. */
  function expectAt(moment: Date | undefined): void {
    if (isHelper) return;
    if (moment !== undefined && (nextDueAt === undefined || moment < nextDueAt)) nextDueAt = moment;
  }

  function takeSlots(crawler: Crawler, wanted: number): DeliverySlot[] {
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
        const end = await deps.postDelivery(crawler, delivery, signal);
        answer = end.answer;
        settled.push(end.outcome);
      } catch (error) {
        if (!signal.aborted) {
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
   * How many of the slots are for new results; the others are for due deliveries of the store. The
   * two take turns.
   */
  function slotsForNew(slots: number, wantNew: number, wantDue: number): number {
    if (wantNew + wantDue <= slots) return wantNew;
    if (slots % 2 === 1) newFirst = !newFirst;
    const half = newFirst ? Math.floor(slots / 2) : Math.ceil(slots / 2);
    return Math.min(wantNew, Math.max(half, slots - wantDue));
  }

  /**
   * If others wait for memory, the pages of an account that uses much of it go to the store and
   * come back one by one.
   */
  function mayHold({ accountId }: Crawler): boolean {
    return memory.waiting === 0 || memory.available({ accountId }) > 0;
  }

  /** The results that are delivered from memory, at most `most`. */
  function holdable(ended: readonly JobOutcome[], most: number): ReadonlySet<JobOutcome> {
    return new Set(ended.filter(({ kind }) => kind === 'delivery').slice(0, most));
  }

  /** Memory for a claim. If there is too little of it, the lane waits for some and returns none. */
  function roomToClaim({ accountId }: Crawler): Grant | undefined {
    const claimant = { accountId, crawlerId };
    const kept = grantedRoom;
    grantedRoom = undefined;
    if (kept !== undefined) return kept;
    const bytes = Math.min(MAX_CLAIM_BYTES, memory.available(claimant));
    const room = bytes < MIN_CLAIM_BYTES ? undefined : memory.tryAcquire(claimant, bytes);
    if (room === undefined) waitForMemory(claimant);
    return room;
  }

  /** Gives back what a lane that claims nothing would keep from others. */
  function stopWaitingForMemory(): void {
    memoryWait?.abort();
    memoryWait = undefined;
    grantedRoom?.release();
    grantedRoom = undefined;
  }

  function waitForMemory(claimant: Claimant): void {
    if (memoryWait !== undefined) return;
    const controller = new AbortController();
    memoryWait = controller;
    memory.acquire(claimant, MIN_CLAIM_BYTES, controller.signal).then(
      (grant) => {
        if (controller.signal.aborted) {
          grant.release();
          return;
        }
        memoryWait = undefined;
        grantedRoom = grant;
        hasRoom = true;
        deps.onChange();
      },
      // Aborted by `close`.
      () => undefined,
    );
  }

  function releaseUnused(turn: DeliveryTurn): void {
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
    get nextDueAt() {
      return nextDueAt;
    },
    pausedUntil: () => paced?.pausedUntil(),
    expectBacklog() {
      backlog = true;
    },
    begin(ended, crawler, claims) {
      const most = crawler.deliveryConcurrency || MAX_POSTS_PER_ENDPOINT;
      const free = isHelper && crawler.deliveryConcurrency > 0 ? 0 : most - posts.size;
      const mode = deliveryModes[crawler.delivery];
      const delivers = mode.delivers && !crawler.pausedByMonitor && free > 0;
      const wantNew = delivers && mayHold(crawler) ? holdable(ended, free).size : 0;
      const mayClaim = delivers && claims && backlog && !isHelper;
      if (!mayClaim) stopWaitingForMemory();
      const room = mayClaim ? roomToClaim(crawler) : undefined;
      const wantDue = room === undefined ? 0 : Math.min(MAX_CLAIM, free);
      const wanted = Math.min(free, wantNew + wantDue);
      const slots = takeSlots(crawler, delivers ? wanted : 0);
      const held = holdable(ended, slotsForNew(slots.length, wantNew, wantDue));
      const outcomes = ended.map((each) => (held.has(each) ? { ...each, held: true } : each));
      const addsBacklog = ended.some((each) => each.kind === 'delivery' && !held.has(each));
      if (addsBacklog) backlog = true;
      return {
        outcomes,
        addsBacklog,
        settlements: settled.splice(0),
        claimLimit: Math.min(slots.length - held.size, wantDue),
        claimBytes: room?.amount ?? 0,
        room,
        slots,
      };
    },
    start(turn, { held, claimed, nextDeliveryAt, keep }, crawler) {
      if (turn.claimLimit > 0) nextDueAt = nextDeliveryAt;
      else for (const { dueAt } of turn.settlements) expectAt(dueAt);
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
      // The store had nothing due, so nothing waits for more room than there was.
      if (turn.claimLimit > 0 && claimed.length === 0 && !turn.addsBacklog) {
        backlog = false;
        waiting = false;
      }
    },
    fail: ({ settlements }) => void settled.unshift(...settlements),
    releaseUnused,
    abortAll: posts.abortAll,
    close() {
      paced?.leave();
      stopWaitingForMemory();
    },
  };
}
