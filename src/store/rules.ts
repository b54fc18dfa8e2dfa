import type { CounterName } from '../domain/crawler.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../domain/durations.ts';
import type { HostsLook, QueueLook } from './queue-store.ts';

// What both stores do alike, whatever their database.

/** How long the outcomes of a push with a `request_id` are kept for a repetition of it. */
export const PUSH_REQUEST_MS = DAY_MS;

/** The attempts that a delivery's log keeps: the latest. */
export const MAX_LOGGED_ATTEMPTS = 100;

/** The jobs that were pushed: those that are queued, and those that have left the queue. */
export function pushedOf(
  counts: Readonly<Record<Exclude<CounterName, 'pushed' | 'deliveriesPending'>, number>>,
): number {
  const { waiting, running, retrying, completed, failed, deleted, purged } = counts;
  return waiting + running + retrying + completed + failed + deleted + purged;
}

/**
 * An episode over an account's limit lasts until the account has fallen to this share of the limit.
 * So a queue that stays near its limit causes one notice and not many.
 */
export const EPISODE_END = 0.9;

/** Most results that are added up for statistics. */
export const MAX_SUMMED_RESULTS = 2_000_000;

/** The two pauses of a crawler. */
export interface Pauses {
  readonly pausedByUser: boolean;
  readonly pausedByMonitor: boolean;
}

/** The pauses that hold back each kind of a crawler's work. */
export const heldBackBy = {
  job: ['pausedByUser', 'pausedByMonitor'],
  delivery: ['pausedByMonitor'],
} as const satisfies Readonly<Record<string, readonly (keyof Pauses)[]>>;

/** A kind of work that a crawler can have due. */
export type WorkKind = keyof typeof heldBackBy;

/** How a look goes from host to host; undefined if it goes by age. */
export function hostsOf(
  { limit, hosts, byAge }: QueueLook,
  hasPriorities: boolean,
): HostsLook | undefined {
  if (hasPriorities)
    return hosts ?? { perHost: limit, rest: limit, after: '', closed: [], full: [] };
  return byAge === true ? undefined : hosts;
}

/**
 * How long an episode may not have been noted and still continue: longer once its owner was told, so
 * that trouble that comes and goes causes one notice.
 */
export const EPISODE_GAP_MS = { told: HOUR_MS, untold: 5 * MINUTE_MS } as const;
