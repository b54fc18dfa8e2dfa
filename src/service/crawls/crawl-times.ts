import { getOrInsert } from '../../domain/get-or-insert.ts';
import { createLruMap } from '../../domain/lru-map.ts';

/** How long the crawls of one crawler took within the last minute, in this process. */
export interface CrawlTimesReport {
  readonly count: number;
  readonly medianMs: number;
  /** 95 of 100 took no longer. */
  readonly p95Ms: number;
}

/** Remembers how long crawls took. */
export interface CrawlTimes {
  note(crawlerId: string, durationMs: number): void;
  /** Undefined when no crawl ended within the last minute. */
  report(crawlerId: string): CrawlTimesReport | undefined;
}

const WINDOW_MS = 60_000;
/** The latest crawls of a crawler that are remembered. */
const MAX_SAMPLES = 256;
/** Crawlers that are remembered; each takes 4 KB. */
const MAX_CRAWLERS = 1_000;

interface Samples {
  /** When each crawl ended and how long it took, in turn; the oldest are overwritten. */
  readonly values: Float64Array;
  next: number;
}

/** Makes an empty memory; `now` is a monotonic time in milliseconds. */
export function createCrawlTimes(now: () => number = () => performance.now()): CrawlTimes {
  const crawlers = createLruMap<string, Samples>({ maxEntries: MAX_CRAWLERS });
  return {
    note(crawlerId, durationMs) {
      const samples = getOrInsert(crawlers, crawlerId, () => ({
        values: new Float64Array(2 * MAX_SAMPLES).fill(-Infinity),
        next: 0,
      }));
      const at = samples.next * 2;
      samples.values[at] = now();
      samples.values[at + 1] = durationMs;
      samples.next = (samples.next + 1) % MAX_SAMPLES;
    },
    report(crawlerId) {
      const values = crawlers.get(crawlerId)?.values;
      if (values === undefined) return undefined;
      const since = now() - WINDOW_MS;
      const durations: number[] = [];
      for (let at = 0; at < values.length; at += 2) {
        if ((values[at] ?? 0) >= since) durations.push(values[at + 1] ?? 0);
      }
      if (durations.length === 0) return undefined;
      durations.sort((a, b) => a - b);
      const share = (part: number): number =>
        Math.round(
          durations[Math.min(Math.floor(durations.length * part), durations.length - 1)] ?? 0,
        );
      return { count: durations.length, medianMs: share(0.5), p95Ms: share(0.95) };
    },
  };
}
