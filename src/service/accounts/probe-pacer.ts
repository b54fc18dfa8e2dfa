import type { Clock } from '../../domain/clock.ts';
import { MINUTE_MS } from '../../domain/durations.ts';
import { createLruMap } from '../../domain/lru-map.ts';

/** One limit that a probe has to keep. */
export interface ProbeLimit {
  /** What the limit is of, such as an account or a host. */
  readonly key: string;
  /** 0 for no limit. */
  readonly perMinute: number;
}

/**
 * Spreads probes over time, so that those beyond a limit are made later and none is left out. Each
 * limit lets a minute's worth through at once.
 */
export interface ProbePacer {
  /**
   * Returns 0 when the probe of `id` may be made now. Otherwise it takes the next free moment of the
   * limit that it meets, and returns the milliseconds until then. A probe that comes back at its
   * moment continues with the limits after that one.
   */
  waitMs(id: string, limits: readonly ProbeLimit[]): number;
}

/** Limits and places that are remembered. */
const MAX_KEYS = 50_000;
const MAX_PLACES = 100_000;

/** Makes a pacer that has let nothing through. */
export function createProbePacer(clock: Clock): ProbePacer {
  /** When the next probe of a key may be made. */
  const nextAt = createLruMap<string, number>({ maxEntries: MAX_KEYS });
  /** How many limits a probe that waits has kept, the one that it waits for included. */
  const places = createLruMap<string, number>({ maxEntries: MAX_PLACES });

  function takeMoment({ key, perMinute }: ProbeLimit, now: number): number {
    if (perMinute === 0) return now;
    const at = Math.max(nextAt.get(key) ?? 0, now - MINUTE_MS + MINUTE_MS / perMinute);
    nextAt.set(key, at + MINUTE_MS / perMinute);
    return at;
  }

  return {
    waitMs(id, limits) {
      const now = clock.now().getTime();
      const kept = places.get(id) ?? 0;
      places.delete(id);
      for (const [index, limit] of limits.entries()) {
        if (index < kept) continue;
        const at = takeMoment(limit, now);
        if (at <= now) continue;
        places.set(id, index + 1);
        return Math.ceil(at - now);
      }
      return 0;
    },
  };
}
