import { createTransientMap } from '../domain/transient-map.ts';
import type { StartedJob } from '../store/store.ts';

/**
 * Crawls in flight whose start no turn has written, by `rid`. A start may wait to be written until
 * its crawl has lasted for a while: most crawls of quick sites have ended by then, and their end and
 * start are one write.
 */
export interface UnwrittenStarts {
  readonly size: number;
  /** How many the next turn writes. */
  readonly due: number;
  /** How long until the next one is due, in ms; infinite if none waits to be. */
  readonly dueInMs: number;
  rids(): Iterable<string>;
  /** Adds a start, which is due at once or after the delay. */
  add(start: StartedJob, atOnce: boolean): void;
  /** Removes a start; returns it if it was there. */
  remove(rid: string): StartedJob | undefined;
  /** Takes all that are due. */
  take(): StartedJob[];
}

/** Makes an empty set. Those that are not due at once are `delayMs` after they were added. */
export function createUnwrittenStarts(
  delayMs: number,
  now: () => number = () => performance.now(),
): UnwrittenStarts {
  const due = createTransientMap<string, StartedJob>();
  /** In the order in which they become due. */
  const later = createTransientMap<
    string,
    { readonly start: StartedJob; readonly dueAt: number }
  >();

  function update(): void {
    if (later.size === 0) return;
    const at = now();
    for (const { start, dueAt } of later.values()) {
      if (dueAt > at) return;
      later.delete(start.rid);
      due.set(start.rid, start);
    }
  }

  return {
    get size() {
      return due.size + later.size;
    },
    get due() {
      update();
      return due.size;
    },
    get dueInMs() {
      const next = later.values().next().value;
      return next === undefined ? Number.POSITIVE_INFINITY : Math.max(0, next.dueAt - now());
    },
    *rids() {
      yield* due.keys();
      yield* later.keys();
    },
    add(start, atOnce) {
      if (atOnce || delayMs === 0) due.set(start.rid, start);
      else later.set(start.rid, { start, dueAt: now() + delayMs });
    },
    remove(rid) {
      const start = due.get(rid) ?? later.get(rid)?.start;
      if (!due.delete(rid)) later.delete(rid);
      return start;
    },
    take() {
      update();
      const taken = [...due.values()];
      due.clear();
      return taken;
    },
  };
}
