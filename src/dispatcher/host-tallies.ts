import { addFailure, type HostState } from '../domain/host-state.ts';
import { createLruMap } from '../domain/lru-map.ts';

/** What has become of the crawls of each host, for people. */
export interface HostTallies {
  readonly size: number;
  /** A try has ended. */
  note(host: string, tookMs: number, failure: string | undefined, nowMs: number): void;
  /** When a try last ended; 0 for never. */
  lastMs(host: string): number;
  hosts(): string[];
  /** The numbers of a host; zeros for one of which nothing is known. */
  of(host: string, nowMs: number): TallyNumbers;
}

type TallyNumbers = Pick<HostState, 'tries' | 'tookMs' | 'failures' | 'perSecond' | 'lastMs'>;

interface Tally {
  tries: number;
  tookMs: number;
  readonly failures: Map<string, number>;
  lastMs: number;
  perSecond: number;
  /** The number of tries when the rate was last measured, and when that was. */
  measuredTries: number;
  measuredMs: number;
}

/** Hosts of one crawler with numbers: those that were crawled last. */
const MAX_HOSTS = 1_000;
/** Interval of the measurements of rates. */
const MEASURE_MS = 4_000;
const NOTHING: TallyNumbers = { tries: 0, tookMs: 0, failures: {}, perSecond: 0, lastMs: 0 };

/** Makes empty tallies. */
export function createHostTallies(): HostTallies {
  const tallies = createLruMap<string, Tally>({ maxEntries: MAX_HOSTS });

  function measure(tally: Tally, nowMs: number): void {
    const sinceMs = nowMs - tally.measuredMs;
    if (sinceMs < MEASURE_MS) return;
    tally.perSecond = ((tally.tries - tally.measuredTries) * 1_000) / sinceMs;
    tally.measuredTries = tally.tries;
    tally.measuredMs = nowMs;
  }

  return {
    get size() {
      return tallies.size;
    },
    note(host, tookMs, failure, nowMs) {
      const tally = tallies.get(host) ?? {
        tries: 0,
        tookMs: 0,
        failures: new Map<string, number>(),
        lastMs: 0,
        perSecond: 0,
        measuredTries: 0,
        measuredMs: nowMs - tookMs,
      };
      tallies.set(host, tally);
      tally.tries += 1;
      tally.tookMs += tookMs;
      if (failure !== undefined) addFailure(tally.failures, failure);
      tally.lastMs = nowMs;
      measure(tally, nowMs);
    },
    lastMs: (host) => tallies.get(host)?.lastMs ?? 0,
    hosts: () => [...tallies.entries()].map(([host]) => host),
    of(host, nowMs) {
      const tally = tallies.get(host);
      if (tally === undefined) return NOTHING;
      measure(tally, nowMs);
      const { tries, tookMs, failures, perSecond, lastMs } = tally;
      return { tries, tookMs, failures: Object.fromEntries(failures), perSecond, lastMs };
    },
  };
}
