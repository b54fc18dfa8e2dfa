import TinyQueue from 'tinyqueue';
import { heldMs, type Lane, startAt } from './host-lane.ts';

/**
 * The order in which lanes start crawls: the one that has held slots for the least time comes first.
 * Lanes that have to wait for a time are passed over until then. A change costs the logarithm of the
 * number of lanes, so that a crawler of a thousand hosts starts a crawl as fast as one of ten.
 */
export interface LaneOrder {
  /** Jobs in lanes that may start a crawl now. */
  startable(nowMs: number): number;
  /** Lanes without a crawl in flight that may start one now. */
  idle(nowMs: number): number;
  /** The lane with the least time that may start a crawl; undefined when none may. */
  least(nowMs: number): Lane | undefined;
  /** When the first of the lanes that wait may start a crawl. */
  nextAt(nowMs: number): number | undefined;
  /** Has to be called after each change of a lane. `limit` is the most crawls that it may have. */
  changed(lane: Lane, limit: number): void;
}

interface Place {
  readonly kind: 'idle' | 'busy' | 'timed';
  /** By which it is ordered among those of its kind. */
  readonly key: number;
  jobs: number;
}

interface Entry {
  readonly lane: Lane;
  readonly place: Place;
}

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
    if (place.kind !== 'timed') total -= place.jobs;
    if (place.kind === 'idle') idleLanes -= 1;
    busy.delete(lane);
    places.delete(lane);
  }

  function enter(lane: Lane, place: Place): void {
    places.set(lane, place);
    if (place.kind !== 'timed') total += place.jobs;
    if (place.kind === 'busy') busy.add(lane);
    else if (place.kind === 'idle') {
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
    const isBusy = lane.running.size > 0;
    const kind = at > latestMs ? 'timed' : isBusy ? 'busy' : 'idle';
    const key = kind === 'timed' ? at : isBusy ? 0 : lane.usedMs;
    const before = places.get(lane);
    if (before?.kind === kind && before.key === key) {
      if (kind !== 'timed') total += jobs - before.jobs;
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
      const isBusy = lane.running.size > 0;
      const key = isBusy ? 0 : lane.usedMs;
      enter(lane, { kind: isBusy ? 'busy' : 'idle', key, jobs: place.jobs });
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
    least(nowMs) {
      advance(nowMs);
      const first = head(resting);
      let best = first?.lane;
      let leastMs = first?.place.key ?? Number.POSITIVE_INFINITY;
      for (const lane of busy) {
        const atLeast = lane.usedMs + lane.running.size * lane.meanMs;
        if (atLeast >= leastMs) continue;
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
