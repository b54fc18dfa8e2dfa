/** A measurement over time. */
export interface Series {
  readonly name: string;
  readonly unit: string;
  /** Seconds since the start, ascending, and values. */
  readonly points: readonly (readonly [seconds: number, value: number])[];
  /** Growth over the time that is judged which is still flat: a share of the median, and an amount. */
  readonly allowed: { readonly share: number; readonly amount: number };
  /** Whether its lowest points are judged: what is left of a heap after it was collected. */
  readonly byFloor?: boolean;
}

/** How a measurement developed. */
export interface Trend {
  readonly median: number;
  /** What the slope adds up to over the time that is judged. */
  readonly growth: number;
  /** The most that counts as flat. */
  readonly allowed: number;
  readonly isFlat: boolean;
}

/** The first part of a run fills caches and pools, and is not judged. */
const WARM_UP_SHARE = 0.3;
/** More points than that are thinned out: the number of slopes is its square. */
const MOST_POINTS = 400;

function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/**
 * The trend of a measurement after its warm-up, by the median of the slopes between all its points
 * (Theil and Sen), which single outliers do not move. Only growth counts. Throws an Error for fewer
 * than ten points.
 */
export function trendOf({ points, allowed, byFloor = false }: Series): Trend {
  const last = points.at(-1)?.[0] ?? 0;
  const warm = points.filter(([at]) => at >= last * WARM_UP_SHARE);
  const judged = byFloor ? floorOf(warm) : warm;
  if (judged.length < 10) throw new Error('a trend needs ten points after the warm-up');
  const every = Math.ceil(judged.length / MOST_POINTS);
  const some = judged.filter((_point, at) => at % every === 0);
  const slopes: number[] = [];
  for (const [at, [seconds, value]] of some.entries()) {
    for (const [later, next] of some.slice(at + 1)) slopes.push((next - value) / (later - seconds));
  }
  const duration = last - (judged[0]?.[0] ?? 0);
  const middle = median(judged.map(([, value]) => value));
  const growth = median(slopes) * duration;
  const most = Math.max(allowed.share * middle, allowed.amount);
  return { median: middle, growth, allowed: most, isFlat: growth <= most };
}

/** Number of stretches of equal length whose lowest points are compared. */
const STRETCHES = 20;

function floorOf(points: Series['points']): Series['points'] {
  const size = Math.max(1, Math.ceil(points.length / STRETCHES));
  return Array.from({ length: Math.ceil(points.length / size) }, (_, at) =>
    points
      .slice(at * size, (at + 1) * size)
      .reduce((lowest, point) => (point[1] < lowest[1] ? point : lowest)),
  );
}
