import { createLruMap } from '../domain/lru-map.ts';
import type { CrawlTask } from '../engine/engine.ts';

/** Decides which thread a crawl runs in. */
export interface ThreadRouting {
  /**
   * The thread for a crawl. Crawls of one host share connections: they go to the thread of the first
   * of them, which was the one with the fewest requests in flight.
   */
  choose(task: CrawlTask): number;
  /** The thread for work that shares nothing with other work. */
  leastLoaded(): number;
  /** Remembers for ten minutes that a crawl of the host ended its thread. */
  suspect(task: CrawlTask): void;
  isSuspect(task: CrawlTask): boolean;
}

const MAX_KEYS = 10_000;
const MAX_SUSPECTS = 1_000;
const SUSPECT_MS = 10 * 60_000;

/** Makes the routing over threads 0 to `threads` - 1. */
export function createThreadRouting(deps: {
  readonly threads: number;
  /** The number of a thread's requests in flight. */
  readonly inFlight: (thread: number) => number;
}): ThreadRouting {
  const places = createLruMap<string, number>({ maxEntries: MAX_KEYS });
  const suspects = createLruMap<string, number>({ maxEntries: MAX_SUSPECTS });

  function leastLoaded(): number {
    let least = 0;
    for (let index = 1; index < deps.threads; index += 1) {
      if (deps.inFlight(index) < deps.inFlight(least)) least = index;
    }
    return least;
  }

  return {
    leastLoaded,
    choose(task) {
      if (deps.threads === 1) return 0;
      const key = targetHost(task);
      const place = places.get(key) ?? leastLoaded();
      places.set(key, place);
      return place;
    },
    suspect(task) {
      suspects.set(targetHost(task), performance.now() + SUSPECT_MS);
    },
    isSuspect: (task) =>
      suspects.size > 0 && (suspects.get(targetHost(task)) ?? 0) > performance.now(),
  };
}

function targetHost(task: CrawlTask): string {
  return URL.parse(task.request.url)?.host ?? '';
}
