import TinyQueue from 'tinyqueue';
import { heldMs, type Lane, leastHeldMs, startAt } from './host-lane.ts';

/**
 * The order in which lanes start crawls: the one that has held slots for the least time comes first.
 * Lanes that have to wait for a time are passed over until then. Hosts that are put aside are kept apart
 * from the others, because not all of them may be tried at once. A change costs the logarithm of the
 * number of lanes, so that a crawler of a thousand hosts starts a crawl as fast as one of ten.
 */
export interface LaneOrder {
  /** Jobs in lanes that may start a crawl now, without tries. */
  startable(nowMs: number): number;
  /** Lanes without a crawl in flight that may start one now, without tries. */
  idle(nowMs: number): number;
  /** The lane with the least time that may start a crawl; undefined when none may. */
  least(nowMs: number, withTries: boolean): Lane | undefined;
  /** When the first of the lanes that wait may start a crawl. */
  nextAt(nowMs: number): number | undefined;
  /** Has to be called after each change of a lane. `limit` is the most crawls that it may have. */
  changed(lane: Lane, limit: number): void;
}

interface Place {
  readonly kind: 'idle' | 'busy' | 'timed' | 'try';
  /** By which it is ordered among those of its kind. */
  readonly key: number;
  jobs: number;
}

interface Entry {
  readonly lane: Lane;
  readonly place: Place;
}

/** The kind of the place of a lane that may start a crawl now. */
function kindOf({ running, health }: Lane): Exclude<Place['kind'], 'timed'> {
  if (running.size > 0) return 'busy';
  return health.needsTry ? 'try' : 'idle';
}

const keyOf = ({ running, usedMs }: Lane): number => (running.size > 0 ? 0 : usedMs);
const isStartable = ({ kind }: Place): boolean => kind === 'idle' || kind === 'busy';

/** Entries of places that have changed stay in a queue until they are this part of it. */
const MAX_OUTDATED = 0.75;
const MIN_REBUILT = 64;

/** Makes an order without lanes. */
export function createLaneOrder(): LaneOrder {
  const places = new Map<Lane, Place>();
  const byKey = (a: Entry, b: Entry): number => a.place.key - b.place.key;
  /** Lanes that have no crawl in flight. Of the others there are few. */
  let resting = new TinyQueue<Entry>([], byKey);
  let timed = new TinyQueue<Entry>([], byKey);
  let tries = new TinyQueue<Entry>([], byKey);
  const busy = new Set<Lane>();
  let total = 0;
  let idleLanes = 0;
  /** The latest time that was given. */
  let latestMs = 0;

  const isCurrent = ({ lane, place }: Entry): boolean => places.get(lane) === place;

  function rebuilt(queue: TinyQueue<Entry>): TinyQueue<Entry> {
    const isSmall = queue.length < MIN_REBUILT || queue.length * (1 - MAX_OUTDATED) < places.size;
    return isSmall ? queue : new TinyQueue(queue.data.filter(isCurrent), byKey);
  }

  function leave(lane: Lane): void {
    const place = places.get(lane);
    if (place === undefined) return;
    if (isStartable(place)) total -= place.jobs;
    if (place.kind === 'idle') idleLanes -= 1;
    busy.delete(lane);
    places.delete(lane);
  }

  function enter(lane: Lane, place: Place): void {
    places.set(lane, place);
    if (isStartable(place)) total += place.jobs;
    if (place.kind === 'busy') busy.add(lane);
    else if (place.kind === 'try') {
      tries = rebuilt(tries);
      tries.push({ lane, place });
    } else if (place.kind === 'idle') {
      idleLanes += 1;
      resting = rebuilt(resting);
      resting.push({ lane, place });
    } else {
      timed = rebuilt(timed);
      timed.push({ lane, place });
    }
  }

  function arrange(lane: Lane, limit: number): void {
    const jobs = Math.min(lane.ahead.size, limit - lane.running.size);
    if (jobs <= 0) return leave(lane);
    const at = startAt(lane);
    const kind = at > latestMs ? 'timed' : kindOf(lane);
    const key = kind === 'timed' ? at : keyOf(lane);
    const before = places.get(lane);
    if (before?.kind === kind && before.key === key) {
      if (isStartable(before)) total += jobs - before.jobs;
      before.jobs = jobs;
      return;
    }
    leave(lane);
    enter(lane, { kind, key, jobs });
  }

  /** The first entry that is current. */
  function head(queue: TinyQueue<Entry>): Entry | undefined {
    for (;;) {
      const entry = queue.peek();
      if (entry === undefined || isCurrent(entry)) return entry;
      queue.pop();
    }
  }

  /** Lets the lanes start whose time has come. */
  function advance(nowMs: number): void {
    latestMs = Math.max(latestMs, nowMs);
    for (;;) {
      const entry = head(timed);
      if (entry === undefined || entry.place.key > latestMs) return;
      timed.pop();
      const { lane, place } = entry;
      leave(lane);
      enter(lane, { kind: kindOf(lane), key: keyOf(lane), jobs: place.jobs });
    }
  }

  return {
    startable(nowMs) {
      advance(nowMs);
      return total;
    },
    idle(nowMs) {
      advance(nowMs);
      return idleLanes;
    },
    least(nowMs, withTries) {
      advance(nowMs);
      const tried = withTries ? head(tries) : undefined;
      const rested = head(resting);
      const isTryFirst =
        (tried?.place.key ?? Number.POSITIVE_INFINITY) <
        (rested?.place.key ?? Number.POSITIVE_INFINITY);
      const first = isTryFirst ? tried : rested;
      let best = first?.lane;
      let leastMs = first?.place.key ?? Number.POSITIVE_INFINITY;
      for (const lane of busy) {
        if (leastHeldMs(lane) >= leastMs) continue;
        const held = heldMs(lane, nowMs);
        if (held >= leastMs) continue;
        best = lane;
        leastMs = held;
      }
      return best;
    },
    nextAt(nowMs) {
      advance(nowMs);
      return head(timed)?.place.key;
    },
    changed: arrange,
  };
}
