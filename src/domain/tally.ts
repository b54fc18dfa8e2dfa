import type { TryKind } from './attention.ts';
import type { CrawlerMoments } from './crawler.ts';
import type { DayField } from './stats.ts';
import { CB_STATUS } from './status.ts';

/** How a job left the queue; the crawler's counter of such jobs has the same name. */
export type JobEnd = 'completed' | 'failed' | 'deleted' | 'purged';

/** A job that left the queue. */
export interface EndedJob {
  readonly end: JobEnd;
  /** The result's status; absent when there is no result. */
  readonly cbStatus?: number | undefined;
  readonly billed?: boolean | undefined;
  /** It waited longer than its `queue_timeout` and was never crawled. */
  readonly timedOut?: boolean | undefined;
  /** Why it failed. */
  readonly failure?: string | undefined;
  /** How long its last crawl took, in milliseconds; absent without one. */
  readonly tookMs?: number | undefined;
}

/** A try that failed. */
export interface FailedTry {
  readonly kind: TryKind;
  readonly error: string;
}

/** What one event adds to the statistics of its crawler. */
export interface Tally {
  /** The counter that grows by one. */
  readonly counter?: JobEnd | 'delivered';
  /** The numbers of the day that grow by one. */
  readonly day: readonly DayField[];
  /** The status whose number in `byCbStatus` grows by one. */
  readonly cbStatus?: number;
  /** How long the crawl took; its kind's number in `times` grows by one. */
  readonly tookMs?: number;
  /** The moments that become now. */
  readonly moments?: readonly (keyof CrawlerMoments)[];
  readonly failed?: FailedTry;
}

/** The end of a job whose result has this status. */
export function resultEnd(cbStatus: number): 'completed' | 'failed' {
  return cbStatus === CB_STATUS.success ? 'completed' : 'failed';
}

/** What a job's end counts as. */
export function tallyEnd({ end, cbStatus, billed, timedOut, failure, tookMs }: EndedJob): Tally {
  if (end === 'deleted' || end === 'purged') return { counter: end, day: [end] };
  const day: DayField[] = [end === 'completed' ? 'success' : 'failed'];
  if (billed === true) day.push('billed');
  if (timedOut === true) day.push('timeouts');
  return {
    counter: end,
    day,
    ...(cbStatus === undefined ? {} : { cbStatus }),
    ...(tookMs === undefined ? {} : { tookMs }),
    ...(timedOut === true ? {} : triedEnd(end, cbStatus, failure)),
  };
}

function triedEnd(
  end: 'completed' | 'failed',
  cbStatus: number | undefined,
  failure = `cb_status ${cbStatus}`,
): Pick<Tally, 'moments' | 'failed'> {
  if (end === 'completed') return { moments: ['crawl', 'success'] };
  return { moments: ['crawl'], failed: { kind: 'crawl', error: failure } };
}

/** What the end of a delivery attempt counts as; one that never started, or of an event, as nothing. */
export function tallyDelivery(attempt: {
  readonly kind: 'delivered' | 'retry' | 'failed' | 'release';
  readonly billed: boolean;
  readonly isEvent?: boolean;
  readonly log?: { readonly error: string };
}): Tally {
  const { kind } = attempt;
  if (attempt.isEvent === true) return { day: [] };
  const billed: DayField[] = attempt.billed ? ['billed'] : [];
  if (kind === 'release') return { day: billed };
  if (kind === 'delivered') {
    return { counter: 'delivered', day: ['deliveries', ...billed], moments: ['delivery'] };
  }
  const failed = { kind: 'delivery', error: attempt.log?.error ?? '' } as const;
  return { day: ['deliveryFailures', ...billed], failed };
}
