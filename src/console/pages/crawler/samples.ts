import type { Crawler } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { CrawlTimes } from '../../../../gen/queuedcrawler/v1/watch_service_pb.ts';
import { serviceNow } from '../../format/service-clock.ts';

/** What a crawler did at one moment. */
export interface Sample {
  /** Seconds since 1970. */
  readonly at: number;
  /** Null while nothing was read, as during an outage. */
  readonly done: number | null;
  readonly failed: number | null;
  readonly queued: number | null;
  readonly medianMs: number | null;
  readonly p95Ms: number | null;
  /** The counters, from which the next sample's rates follow where the service tells none. */
  readonly totals: { readonly done: number; readonly failed: number };
}

/** Readings that are further apart have a gap between them, in seconds. */
const GAP_SECONDS = 10;
/** Ten minutes of a second each. */
const MAX_SAMPLES = 600;

/** Adds what was just read; two readings within half a second are one. */
export function addSample(
  samples: readonly Sample[],
  { activity }: Crawler,
  times: CrawlTimes | undefined,
): readonly Sample[] {
  if (activity === undefined) return samples;
  const at = serviceNow() / 1_000;
  const last = samples.at(-1);
  if (last !== undefined && at - last.at < 0.5) return samples;
  const totals = { done: Number(activity.completed), failed: Number(activity.failed) };
  const { rates } = activity;
  const since = (kind: 'done' | 'failed'): number =>
    last === undefined ? 0 : Math.max(0, totals[kind] - last.totals[kind]) / (at - last.at);
  const sample: Sample = {
    at,
    done: rates?.completed ?? since('done'),
    failed: rates?.failed ?? since('failed'),
    queued: Number(activity.waiting) + Number(activity.retrying),
    medianMs: times?.medianMs ?? null,
    p95Ms: times?.p95Ms ?? null,
    totals,
  };
  const kept = samples.slice(1 - MAX_SAMPLES);
  if (last === undefined || at - last.at < GAP_SECONDS) return [...kept, sample];
  const nothing = { done: null, failed: null, queued: null, medianMs: null, p95Ms: null, totals };
  return [...kept, { at: last.at + 1, ...nothing }, sample];
}
