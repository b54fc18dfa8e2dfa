/**
 * Upper bounds, in milliseconds, of the kinds of durations that are counted. A percentile read from
 * these counts lies between the same two bounds as the exact one, which are up to twice apart.
 */
const BOUNDS = [
  10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500,
  10_000, 15_000, 20_000, 30_000, 60_000, 90_000, 120_000, 180_000, 300_000, 600_000,
];

/** Numbers of crawls, by the bound of their duration; see {@link timeBucket}. */
export type CrawlTimeCounts = Readonly<Record<string, number>>;

/** The bound under which a duration is counted; the last one for what is longer. */
export function timeBucket(tookMs: number): string {
  return String(BOUNDS.find((bound) => tookMs <= bound) ?? BOUNDS.at(-1));
}

/** The duration that this share of the crawls did not exceed, in milliseconds; undefined without any. */
export function percentile(counts: CrawlTimeCounts, share: number): number | undefined {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (total <= 0) return undefined;
  let left = total * share;
  let lower = 0;
  for (const bound of BOUNDS) {
    const count = counts[bound] ?? 0;
    if (count >= left && count > 0) return Math.round(lower + ((bound - lower) * left) / count);
    left -= count;
    lower = bound;
  }
  return lower;
}
