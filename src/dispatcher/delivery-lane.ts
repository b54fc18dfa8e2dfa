import type { Crawler } from '../domain/crawler.ts';
import type { DeliverBatch } from '../domain/crawler-settings.ts';
import { defined } from '../domain/defined.ts';
import type { Delivery, EndpointAnswer } from '../domain/delivery.ts';
import { deliveryModes } from '../domain/delivery-mode.ts';
import { createTransientMap } from '../domain/transient-map.ts';
import type { FairPool, Grant } from '../fairness/fair-pool.ts';
import type { DeliveryOutcome, JobOutcome } from '../store/store.ts';
import { createClaimMemory } from './claim-memory.ts';
import { groupsOf, type WaitingDelivery } from './delivery-groups.ts';
import type { DeliveryPaces } from './delivery-paces.ts';
import type { DispatcherDeps } from './dispatcher-deps.ts';
import { MAX_POSTS_PER_ENDPOINT } from './endpoint-pace.ts';
import { createInFlight, WorkAborted } from './in-flight.ts';
import type { KeptPage } from './job-board.ts';
import type { DeliverySlot } from './paced-endpoint.ts';
import type { PacedLane } from './paced-lane.ts';

/** What the lane works with. */
export interface DeliveryLaneDeps extends Pick<DispatcherDeps, 'postDeliveries' | 'logger'> {
  readonly crawlerId: string;
  /** The process's bytes in flight, which include the pages that are being posted. */
  readonly memory: FairPool;
  readonly paces: DeliveryPaces;
  /**
   * Whether the lane posts only results of its own crawls, and none of a crawler that limits its
   * posts at once: the lead posts those.
   */
  readonly isHelper: boolean;
  /** Whether posts may start now: not in a process that slept through its lease. */
  readonly mayPost: () => boolean;
  /** Called when a post has ended, or when there is room for deliveries of the store. */
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
}

/**
 * The deliveries of one crawler's run: those in flight, those that wait in memory, those that have
 * ended and are not written yet. It does not call the store: `begin` returns what a turn has to write
 * and to claim, `start` takes in the deliveries that the turn won and claimed. A slot that becomes
 * free starts the next of them at once, without the database. A page waits in memory only if its
 * endpoint will soon take it (see {@link DeliveryPaces}); all others wait in the store.
 */
export interface DeliveryLane {
  /** Posts in flight. */
  readonly inFlight: number;
  /** Deliveries in memory that wait for a slot. */
  readonly buffered: number;
  /** Ended posts that no turn has taken yet. */
  readonly unsettled: number;
  /** Whether there is room again for deliveries of the store, so a turn has something to do. */
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
   * was begun ends with `release`.
   */
  begin(ended: readonly JobOutcome[], crawler: Crawler, claims: boolean): DeliveryTurn;
  /** Takes in the held results that were won, and the deliveries that were claimed, and posts. */
  start(
    turn: DeliveryTurn,
    written: {
      /** The turn's held results that were won. */
      readonly held: readonly Delivery[];
      readonly claimed: readonly Delivery[];
      /** When the next delivery falls due, if none was claimed. */
      readonly nextDeliveryAt: Date | undefined;
      /** Hands over the page of a held result in memory. */
      readonly keep: (rid: string) => KeptPage;
    },
  ): void;
  /** Takes the settlements of a turn that failed into the next one. */
  fail(turn: DeliveryTurn): void;
  /** Gives back the memory that no claimed page uses; after `start`, or instead of it. */
  release(turn: DeliveryTurn): void;
  /** The run drains. The store gets back what the endpoint does not take soon; nothing waits for others. */
  giveBackLate(): void;
  abortAll(reason: WorkAborted): void;
  /** Aborts everything and gives all room back. Returns what no turn has written. */
  close(): readonly DeliveryOutcome[];
}

/**
 * A page waits in memory if its endpoint, at its present pace, takes it within this number of turns.
 * Longer waits make the endpoint no busier. The time of these turns is clamped to the two bounds.
 */
const AHEAD_TURNS = 2;
const MIN_AHEAD_MS = 30;
const MAX_AHEAD_MS = 250;
/** Weight of the last turn in the time of a turn. */
const SMOOTHING = 1 / 4;
/** Most deliveries of a crawler that wait in memory. */
const MAX_AHEAD = 1_024;
/** Posts of several results at once; each has some megabytes in memory while it is made and sent. */
const MAX_POSTS_TOGETHER = 16;
/** One claim of more would keep the database from others. */
const MAX_CLAIM = 64;

/** Makes a lane in which nothing is in flight. */
export function createDeliveryLane(deps: DeliveryLaneDeps): DeliveryLane {
  const { crawlerId, memory, logger, isHelper } = deps;
  const posts = createInFlight(onRoom);
  /** Deliveries that wait for a slot, by `rid`. */
  const queue = createTransientMap<string, WaitingDelivery>();
  const settled: DeliveryOutcome[] = [];
  /** As the last turn had it. */
  let crawler: Crawler | undefined;
  let paced: PacedLane | undefined;
  let hasRoom = false;
  let waiting = false;
  let isFilling = false;
  let drains = false;
  /** Posts results that have waited for others. */
  let timer: NodeJS.Timeout | undefined;
  /** Most results that the endpoint has taken in one POST, after it refused more. */
  let mostTogether = Number.POSITIVE_INFINITY;
  /** Between the beginnings of two turns, smoothed. */
  let turnMs = MAX_AHEAD_MS;
  let begunAt = performance.now();
  /** Whether the store may hold due deliveries. */
  let backlog = true;
  let nextDueAt: Date | undefined;
  const claimMemory = createClaimMemory(memory, () => {
    hasRoom = true;
    deps.onChange();
  });
  /** Alternates which side gets the extra place when their number is odd. */
  let newFirst = true;

  /** A delivery that goes back to the store is due there at that moment, or at once. */
  function expectAt(moment: Date | undefined): void {
    if (isHelper) return;
    if (moment !== undefined && (nextDueAt === undefined || moment < nextDueAt)) nextDueAt = moment;
  }

  function lineOf({ accountId }: Crawler): PacedLane {
    paced ??= deps.paces.open({ accountId, crawlerId }, onRoom);
    return paced;
  }

  /** Called when a post has ended, or when there may be room for one. */
  function onRoom(): void {
    fillSoon();
    // Others may be next in line.
    if (queue.size === 0) paced?.leave();
    if (backlog && queue.size <= Math.max(MAX_CLAIM / 2, perPost())) hasRoom = true;
    deps.onChange();
  }

  function mostPosts({ deliveryConcurrency, deliverBatch }: Crawler): number {
    if (isHelper && deliveryConcurrency > 0) return 0;
    return deliveryConcurrency || (deliverBatch ? MAX_POSTS_TOGETHER : MAX_POSTS_PER_ENDPOINT);
  }

  /**
   * Posts what waits, in the next iteration of the event loop, once for all posts that end in this
   * one. What posts leave behind would not die young if it ran within them.
   */
  function fillSoon(): void {
    if (isFilling || queue.size === 0) return;
    isFilling = true;
    setImmediate(() => {
      isFilling = false;
      fill();
    });
  }

  /** Posts what waits, as far as there are slots. */
  function fill(): void {
    clearTimeout(timer);
    if (crawler === undefined || queue.size === 0 || !deps.mayPost()) return;
    const free = mostPosts(crawler) - posts.size;
    const nowMs = drains ? Number.POSITIVE_INFINITY : performance.now();
    const { groups, dueMs } = groupsOf(queue.values(), togetherOf(crawler), free, nowMs);
    if (dueMs !== undefined) timer = setTimeout(fill, Math.max(1, Math.ceil(dueMs - nowMs)));
    const slots = lineOf(crawler).take(targetOf(crawler), groups.length);
    for (const [at, slot] of slots.entries()) {
      const group = groups[at];
      if (group === undefined) throw new Error('a slot was taken for nothing');
      for (const { delivery } of group) queue.delete(delivery.rid);
      post(group, crawler, slot);
    }
  }

  /** How many results a POST has now. */
  function togetherOf({ deliverBatch: set }: Crawler): DeliverBatch | undefined {
    return set && { ...set, maxResults: Math.min(set.maxResults, mostTogether) };
  }

  /** As many as fill a POST of several; none for a POST of one. */
  const perPost = (): number => (crawler && togetherOf(crawler)?.maxResults) ?? 0;

  function timeTurn(): void {
    const now = performance.now();
    turnMs += (Math.min(now - begunAt, MAX_AHEAD_MS) - turnMs) * SMOOTHING;
    begunAt = now;
  }

  /** How many deliveries may wait in memory. */
  function mostAhead(current: Crawler): number {
    const ms = Math.min(Math.max(turnMs * AHEAD_TURNS, MIN_AHEAD_MS), MAX_AHEAD_MS);
    const postsAhead = lineOf(current).takesWithin(targetOf(current), ms);
    return Math.min(postsAhead * (togetherOf(current)?.maxResults ?? 1), MAX_AHEAD);
  }

  function releaseDelivery({ rid, attempt }: Delivery): void {
    settled.push({ kind: 'release', rid, crawlerId, attempt, billed: false });
    backlog = !isHelper;
  }

  /** Gives deliveries that wait back to the store, all but the first `kept`. */
  function giveBack(kept: number): void {
    if (queue.size <= kept) return;
    for (const { delivery, held } of [...queue.values()].slice(kept)) {
      queue.delete(delivery.rid);
      releaseDelivery(delivery);
      for (const grant of held) grant.release();
    }
  }

  /** Hysteresis: returns deliveries to the store only beyond twice the target. */
  const giveBackBeyond = (ahead: number): void => giveBack(ahead * 2);

  function post(group: readonly WaitingDelivery[], crawler: Crawler, slot: DeliverySlot): void {
    const deliveries = group.map(({ delivery }) => delivery);
    const { rid = '' } = deliveries[0] ?? {};
    posts.start(rid, async (signal) => {
      let answer: EndpointAnswer | undefined;
      try {
        const end = await deps.postDeliveries(crawler, deliveries, signal);
        answer = end.answer;
        if (end.isTooLong) mostTogether = Math.max(1, Math.floor(group.length / 2));
        settled.push(...end.outcomes);
        for (const delivery of deliveries.slice(end.outcomes.length)) releaseDelivery(delivery);
      } catch (error) {
        if (!signal.aborted) logger.error({ err: error, rid }, 'delivery failed unexpectedly');
        if (error instanceof WorkAborted && error.end === 'dropped') return;
        for (const delivery of deliveries) releaseDelivery(delivery);
      } finally {
        slot.end(answer);
        for (const grant of group.flatMap(({ held }) => held)) grant.release();
      }
    });
  }

  /**
   * How many of the places are for new results; the others are for due deliveries of the store. The
   * two take turns.
   */
  function placesForNew(places: number, wantNew: number, wantDue: number): number {
    if (wantNew + wantDue <= places) return wantNew;
    if (places % 2 === 1) newFirst = !newFirst;
    const half = newFirst ? Math.floor(places / 2) : Math.ceil(places / 2);
    return Math.min(wantNew, Math.max(half, places - wantDue));
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

  function abortAll(reason: WorkAborted): void {
    posts.abortAll(reason);
    if (reason.end === 'released') giveBack(0);
    for (const { held } of queue.values()) for (const grant of held) grant.release();
    queue.clear();
    clearTimeout(timer);
  }

  return {
    get inFlight() {
      return posts.size;
    },
    get buffered() {
      return queue.size;
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
      if (isHelper) return;
      hasRoom = true;
      // The next claim tells when others fall due.
      nextDueAt = undefined;
    },
    begin(ended, current, claims) {
      crawler = current;
      hasRoom = false;
      timeTurn();
      const { delivers: isWebhook } = deliveryModes[current.delivery];
      const delivers = isWebhook && !current.pausedByMonitor && mostPosts(current) > 0;
      const ahead = delivers ? mostAhead(current) : 0;
      if (!delivers) paced?.leave();
      giveBackBeyond(ahead);
      const isCrowded = paced?.waitsForSlots ?? false;
      const places = isCrowded ? 0 : Math.max(0, ahead - queue.size);
      const wantNew = delivers && mayHold(current) ? holdable(ended, MAX_AHEAD).size : 0;
      const mayClaim = places > 0 && claims && backlog && !isHelper;
      if (!mayClaim) claimMemory.stopWaiting();
      const { accountId } = current;
      const room = mayClaim ? claimMemory.take({ accountId, crawlerId }) : undefined;
      const wantDue = room === undefined ? 0 : Math.min(MAX_CLAIM, places);
      const held = holdable(ended, placesForNew(places, wantNew, wantDue));
      const outcomes = ended.map((each) => (held.has(each) ? { ...each, held: true } : each));
      const addsBacklog = ended.some((each) => each.kind === 'delivery' && !held.has(each));
      if (addsBacklog) backlog = true;
      waiting = delivers && (wantNew + wantDue > places || (backlog && places === 0));
      // A lane that has nothing to post is told when its endpoint takes something again.
      if (waiting && queue.size === 0) lineOf(current).waitFor(targetOf(current));
      return {
        outcomes,
        addsBacklog,
        settlements: settled.splice(0),
        claimLimit: Math.min(places - held.size, wantDue),
        claimBytes: room?.amount ?? 0,
        room,
      };
    },
    start(turn, { held, claimed, nextDeliveryAt, keep }) {
      if (turn.claimLimit > 0) nextDueAt = nextDeliveryAt;
      else for (const { dueAt } of turn.settlements) expectAt(dueAt);
      const sinceMs = performance.now();
      for (const delivery of held) {
        const { plain, held } = keep(delivery.rid);
        const kept = { ...delivery, ...defined({ plain }) };
        queue.set(delivery.rid, { delivery: kept, held, sinceMs });
      }
      for (const delivery of claimed) {
        const bytes = turn.room?.split(delivery.body.byteLength);
        queue.set(delivery.rid, { delivery, held: bytes === undefined ? [] : [bytes], sinceMs });
      }
      // The store had nothing due, so nothing waits for more room than there was.
      if (turn.claimLimit > 0 && claimed.length === 0 && !turn.addsBacklog) {
        backlog = false;
        waiting = false;
      }
      fill();
      // The store may have others for free slots, or to fill a POST of several.
      if (claimed.length > 0 && queue.size < Math.max(1, perPost())) hasRoom = true;
    },
    fail: ({ settlements }) => void settled.unshift(...settlements),
    release: ({ room }) => room?.release(),
    giveBackLate() {
      drains = true;
      fillSoon();
      if (crawler !== undefined && queue.size > 0) giveBackBeyond(mostAhead(crawler));
    },
    abortAll,
    close() {
      abortAll(new WorkAborted('dropped'));
      paced?.leave();
      claimMemory.stopWaiting();
      return settled.splice(0);
    },
  };
}

const targetOf = (crawler: Crawler): string => deliveryModes[crawler.delivery].target(crawler);
