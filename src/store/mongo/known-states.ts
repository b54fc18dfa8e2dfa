import { createLruMap } from '../../domain/lru-map.ts';
import type { CrawlerState } from './ledger.ts';

/** Crawlers that one process remembers between its turns. */
const MAX_STATES = 1_000;
/** How old the crawler that a lease was taken of may be for a turn that only looks. */
const FRESH_MS = 100;

/**
 * The crawlers of this process's runs, each as its last turn has left it or as its lease was taken.
 * Writes on them are conditional, so for those they may be of any age.
 */
export interface KnownStates {
  /** The crawler for the next turn, which forgets it; undefined when it has to be read. */
  take(crawlerId: string, writes: boolean): CrawlerState | undefined;
  /** The crawler as a turn has left it. */
  set(state: CrawlerState): void;
  /** The crawler as it is now that its lease was taken. */
  acquired(state: CrawlerState): void;
}

/** Makes an empty one. */
export function createKnownStates(): KnownStates {
  const states = createLruMap<
    string,
    { readonly state: CrawlerState; readonly freshUntilMs: number }
  >({ maxEntries: MAX_STATES });
  return {
    take(crawlerId, writes) {
      const known = states.get(crawlerId);
      states.delete(crawlerId);
      const isUsable = writes || (known?.freshUntilMs ?? 0) > performance.now();
      return isUsable ? known?.state : undefined;
    },
    set: (state) => states.set(state._id, { state, freshUntilMs: 0 }),
    acquired(state) {
      states.set(state._id, { state, freshUntilMs: performance.now() + FRESH_MS });
    },
  };
}
