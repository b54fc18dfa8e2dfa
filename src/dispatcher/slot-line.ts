import type { CrawlSlot } from '../domain/crawl-slot.ts';
import { createTransientMap } from '../domain/transient-map.ts';
import type { Grant } from '../fairness/fair-pool.ts';

/** The slot of one crawl, as the dispatcher has it. */
export interface LineSlot extends CrawlSlot {
  /** The crawl has started: does nothing if that is known. */
  begin(): void;
  /** The crawl has ended: gives its slot back. */
  leave(): void;
}

/**
 * The slots of one run, and its crawls that wait in their threads for one of them. If each start took a
 * message to the dispatcher and one back, slots of quick sites would stand idle for a tenth of the time.
 */
export interface SlotLine {
  /** Crawls that wait for a slot. */
  readonly waiting: number;
  /** Whether one has waited so long that the next free slot is for it, and not for another job. */
  readonly isLate: boolean;
  /** The rids of those. */
  rids(): Iterable<string>;
  /** Whether one more may wait, beside so many slots. */
  mayWait(slots: number): boolean;
  /**
   * Adds a crawl, which waits if it comes without a slot. `onStart` is called once, when it has
   * started.
   */
  enter(rid: string, grant: Grant | undefined, onStart: () => void): LineSlot;
  /** Starts the first of those that wait in this slot. Throws when none does. */
  startFirst(grant: Grant): void;
  /** Forgets one that waits, or all: they start no more. Returns their rids. */
  drop(rid?: string): readonly string[];
}

/**
 * Most crawls that wait for each slot of a run, and for all of them. With one for each slot a third of the
 * slots came back to the dispatcher, because their thread had none left when several pages came at once.
 */
const WAITING_PER_SLOT = 3;
const MOST_WAITING = 64;
/** With more slots, enough pages are under way whatever waits for the dispatcher. */
const MOST_SLOTS = 32;
/** While one has waited for longer, no others are added, and the next free slot is its own. */
const LONG_MS = 100;
/** After such a wait none are added for a while: where pages take long, nothing is gained. */
const REST_MS = 1_000;

/**
 * One is made for each crawl. An accessor in its literal would keep the garbage of each page alive: see
 * decision 027.
 */
interface Place extends LineSlot {
  isHeld: boolean;
  heldSinceMs: number | undefined;
  readonly rid: string;
  readonly enteredMs: number;
  /** Starts it in this slot, and tells its thread unless that has started it. */
  start(slot: Grant, hasStarted: boolean): void;
}

let lines = 0;

/** Makes a line without crawls. `now` is in milliseconds. */
export function createSlotLine(now: () => number = () => performance.now()): SlotLine {
  lines += 1;
  const line = lines;
  const waiting = createTransientMap<CrawlSlot, Place>();
  let restUntilMs = 0;

  function createPlace(rid: string, given: Grant | undefined, onStart: () => void): Place {
    let grant = given;
    let startInThread: (() => void) | undefined;
    const place: Place = {
      line,
      rid,
      enteredMs: now(),
      isHeld: false,
      heldSinceMs: undefined,
      whenGiven(start) {
        startInThread = start;
      },
      passTo(next) {
        const heir = waiting.get(next);
        const passed = grant;
        if (heir === undefined || passed === undefined) return;
        grant = undefined;
        heir.start(passed, true);
      },
      start(slot, hasStarted) {
        grant = slot;
        place.begin();
        if (!hasStarted) startInThread?.();
      },
      begin() {
        if (place.isHeld) return;
        const heldSinceMs = now();
        place.isHeld = true;
        place.heldSinceMs = heldSinceMs;
        if (heldSinceMs - place.enteredMs > LONG_MS) restUntilMs = heldSinceMs + REST_MS;
        waiting.delete(place);
        onStart();
      },
      leave() {
        waiting.delete(place);
        grant?.release();
        grant = undefined;
      },
    };
    return place;
  }

  return {
    get waiting() {
      return waiting.size;
    },
    get isLate() {
      const first = waiting.values().next().value;
      return first !== undefined && now() - first.enteredMs > LONG_MS;
    },
    *rids() {
      for (const { rid } of waiting.values()) yield rid;
    },
    mayWait(slots) {
      const at = now();
      const most = Math.min(slots * WAITING_PER_SLOT, MOST_WAITING);
      if (slots > MOST_SLOTS || waiting.size >= most || at < restUntilMs) return false;
      const first = waiting.values().next().value;
      return first === undefined || at - first.enteredMs <= LONG_MS;
    },
    enter(rid, grant, onStart) {
      const place = createPlace(rid, grant, onStart);
      if (grant === undefined) waiting.set(place, place);
      else place.begin();
      return place;
    },
    startFirst(grant) {
      const first = waiting.values().next().value;
      if (first === undefined) throw new Error('no crawl waits for a slot');
      first.start(grant, false);
    },
    drop(rid) {
      const dropped = [...waiting.values()].filter((each) => rid === undefined || each.rid === rid);
      for (const place of dropped) waiting.delete(place);
      return dropped.map((place) => place.rid);
    },
  };
}
