import { createLruMap } from '../domain/lru-map.ts';
import type { CrawlTask } from '../engine/engine.ts';

/** Decides which thread a crawl runs in. */
export interface ThreadRouting {
  /**
   * What shares connections and cookies stays together: crawls of one session, else crawls of one host, go to the thread that the
   * first of them went to, which was the one with the least to do.
   */
  threadOf(task: CrawlTask): number;
  /** For work that shares nothing with other work. */
  leastLoaded(): number;
  /** Remembers for a while that the host took its thread with it. */
  suspect(task: CrawlTask): void;
  isSuspect(task: CrawlTask): boolean;
}

const MAX_KEYS = 10_000;
const MAX_SUSPECTS = 1_000;
const SUSPECT_MS = 10 * 60_000;

/** Makes the routing over threads 0 to `threads` - 1; `loadOf` says how much a thread has to do. */
export function createThreadRouting(deps: {
  readonly threads: number;
  readonly loadOf: (thread: number) => number;
}): ThreadRouting {
  const places = createLruMap<string, number>({ maxEntries: MAX_KEYS });
  const suspects = createLruMap<string, number>({ maxEntries: MAX_SUSPECTS });

  function leastLoaded(): number {
    let least = 0;
    for (let index = 1; index < deps.threads; index += 1) {
      if (deps.loadOf(index) < deps.loadOf(least)) least = index;
    }
    return least;
  }

  return {
    leastLoaded,
    threadOf(task) {
      if (deps.threads === 1) return 0;
      const { cookies_session: session } = task.request.parameters;
      const key =
        session === undefined || session === '' ? hostOf(task) : `${task.accountId} ${session}`;
      const place = places.get(key) ?? leastLoaded();
      places.set(key, place);
      return place;
    },
    suspect(task) {
      suspects.set(hostOf(task), performance.now() + SUSPECT_MS);
    },
    isSuspect: (task) => suspects.size > 0 && (suspects.get(hostOf(task)) ?? 0) > performance.now(),
  };
}

function hostOf(task: CrawlTask): string {
  return URL.parse(task.request.url)?.host ?? '';
}
