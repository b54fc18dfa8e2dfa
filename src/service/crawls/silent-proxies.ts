import { SECOND_MS } from '../../domain/durations.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import { createLruMap } from '../../domain/lru-map.ts';

/**
 * Which proxies have crawls in flight and give no answer. One that is dead shows it only when the time
 * is up, and without this all slots of a crawler would wait for such proxies by then.
 */
export interface SilentProxies {
  /** Whether another crawl should take another proxy, if it can. */
  isSilent(proxyId: string, nowMs: number): boolean;
  /** A crawl has started. The result is called at its end, with whether the target was reached. */
  started(proxyId: string, nowMs: number): (isReached: boolean, nowMs: number) => void;
}

/** A proxy that has answered before is silent after this. */
const SILENT_MS = 2 * SECOND_MS;

interface Entry {
  inFlight: number;
  hasAnswered: boolean;
  /** When the first of those in flight started, or the last answer came. */
  sinceMs: number;
}

/** Makes the look-out for up to `maxProxies` proxies; none of them has answered yet. */
export function createSilentProxies(maxProxies: number): SilentProxies {
  const entries = createLruMap<string, Entry>({
    maxEntries: maxProxies,
    isPinned: ({ inFlight }) => inFlight > 0,
  });
  return {
    isSilent(proxyId, nowMs) {
      const entry = entries.get(proxyId);
      if (entry === undefined || entry.inFlight === 0) return false;
      return !entry.hasAnswered || nowMs - entry.sinceMs > SILENT_MS;
    },
    started(proxyId, startedMs) {
      const entry = getOrInsert(entries, proxyId, () => ({
        inFlight: 0,
        hasAnswered: false,
        sinceMs: startedMs,
      }));
      if (entry.inFlight === 0) entry.sinceMs = startedMs;
      entry.inFlight += 1;
      return (isReached, nowMs) => {
        entry.inFlight -= 1;
        if (!isReached) return;
        entry.hasAnswered = true;
        entry.sinceMs = nowMs;
      };
    },
  };
}
