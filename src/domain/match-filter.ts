import { hostOf } from './target-url.ts';

/** Which jobs, results or deliveries are meant; all conditions together, absent ones select all. */
export interface MatchFilter {
  /** A part of the pushed URL; upper and lower case are the same. */
  readonly urlContains?: string;
  /** The host of the pushed URL, with a port that is not the default one. */
  readonly host?: string;
  /** The name of the batch. */
  readonly batch?: string;
  /** Why the crawl, its last try, or the last attempt of the delivery failed. */
  readonly reason?: string;
  readonly cbStatus?: number;
  /** Status of the target. */
  readonly originalStatus?: number;
  /** Pushed (jobs) or ended (others) at this moment or later. */
  readonly from?: Date;
  readonly to?: Date;
}

/** What a filter looks at. */
export interface Matchable {
  readonly url: string;
  readonly batch: string | undefined;
  readonly reasons: readonly (string | undefined)[];
  /** Undefined for a job, which has no status yet. */
  readonly cbStatus: number | undefined;
  readonly originalStatus: number | undefined;
  readonly at: Date;
}

/** Whether the filter selects it. */
export function isMatch(filter: MatchFilter, row: Matchable): boolean {
  const { urlContains, host, batch, reason, cbStatus, originalStatus, from, to } = filter;
  return (
    (batch === undefined || row.batch === batch) &&
    (reason === undefined || row.reasons.includes(reason)) &&
    (cbStatus === undefined || row.cbStatus === cbStatus) &&
    (originalStatus === undefined || row.originalStatus === originalStatus) &&
    (from === undefined || row.at >= from) &&
    (to === undefined || row.at < to) &&
    (host === undefined || hostOf(row.url) === host) &&
    (urlContains === undefined || row.url.toLowerCase().includes(urlContains.toLowerCase()))
  );
}
