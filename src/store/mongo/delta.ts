import type { UpdateFilter } from 'mongodb';
import { MAX_STREAK_ERROR, SUCCESS, type TryKind } from '../../domain/attention.ts';
import { timeBucket } from '../../domain/crawl-time-buckets.ts';
import type { CrawlerMoments } from '../../domain/crawler.ts';
import type { QueuedJob } from '../../domain/job.ts';
import { type DayField, toDay } from '../../domain/stats.ts';
import { type FailedTry, type Tally, tallyEnd } from '../../domain/tally.ts';
import type { AccountChange } from './account-increments.ts';
import type { JobDocument } from './collections.ts';
import type { Counter, CountsDocument } from './counts-document.ts';

/** Changes of one crawler's counters and of a day of its history, written in one update. */
export interface Delta {
  /** Changes of what the account counts. */
  readonly account: Required<AccountChange>;
  add(counter: Counter, by: number): void;
  addStored(bytes: number): void;
  addDay(field: DayField, by: number): void;
  /** Adds what one event counts as. */
  addTally(tally: Tally): void;
  /** Sets the moment to the delta's. */
  happened(moment: keyof CrawlerMoments): void;
  /** Adds to the tries in a row that failed. */
  addFailed(failed: FailedTry): void;
  /** Moves a job from its state to another; undefined for one that was or is not there. */
  move(size: number, from: QueuedJob['state'] | undefined, to?: QueuedJob['state']): void;
  /** A job is removed. */
  remove(job: Pick<JobDocument, 'state' | 'size'>, end: 'deleted' | 'purged'): void;
  /** The update that writes it. */
  toUpdate(): UpdateFilter<CountsDocument>;
}

/** Starts gathering changes that happened at `now`. */
export function createDelta(now: Date): Delta {
  const day = toDay(now);
  const increments: Record<string, number> = {};
  const moments: Record<string, Date> = {};
  const failures = new Map<TryKind, { count: number; error: string }>();
  let storedBytes = 0;
  const addTo = (path: string, by: number): void => {
    const sum = (increments[path] ?? 0) + by;
    if (sum === 0) delete increments[path];
    else increments[path] = sum;
  };
  const delta: Delta = {
    get account() {
      const of = (name: Counter): number => increments[name] ?? 0;
      return {
        queued: of('waiting') + of('retrying'),
        queuedBytes: of('queuedBytes') + of('runningBytes'),
        storedBytes,
      };
    },
    add: addTo,
    addStored: (bytes) => void (storedBytes += bytes),
    addDay: (field, by) => addTo(`days.${day}.${field}`, by),
    addTally(tally) {
      if (tally.counter !== undefined) delta.add(tally.counter, 1);
      for (const field of tally.day) delta.addDay(field, 1);
      if (tally.cbStatus !== undefined) addTo(`days.${day}.byCbStatus.${tally.cbStatus}`, 1);
      if (tally.tookMs !== undefined) addTo(`days.${day}.times.${timeBucket(tally.tookMs)}`, 1);
      for (const moment of tally.moments ?? []) delta.happened(moment);
      if (tally.failed !== undefined) delta.addFailed(tally.failed);
    },
    addFailed({ kind, error }) {
      const count = (failures.get(kind)?.count ?? 0) + 1;
      failures.set(kind, { count, error: error.slice(0, MAX_STREAK_ERROR) });
    },
    happened(moment) {
      moments[`last.${moment}`] = now;
    },
    move(size, from, to) {
      for (const [state, by] of [
        [from, -1],
        [to, 1],
      ] as const) {
        if (state === undefined) continue;
        delta.add(state, by);
        delta.add(state === 'running' ? 'runningBytes' : 'queuedBytes', by * size);
      }
    },
    remove({ state, size }, end) {
      delta.move(size, state);
      delta.addTally(tallyEnd({ end }));
    },
    toUpdate() {
      const $inc = { ...increments };
      const $max = { ...moments };
      const $min: Record<string, unknown> = {};
      const $set: Record<string, string> = {};
      const $unset: Record<string, ''> = {};
      for (const kind of Object.keys(SUCCESS) as TryKind[]) {
        const path = `failing.${kind}`;
        const failed = failures.get(kind);
        // A success ends a streak, whatever else failed in the same turn.
        if (`last.${SUCCESS[kind]}` in moments) $unset[path] = '';
        else if (failed !== undefined) {
          $inc[`${path}.count`] = failed.count;
          $min[`${path}.since`] = now;
          $max[`${path}.at`] = now;
          $set[`${path}.error`] = failed.error;
        }
      }
      if (Object.keys(increments).some((path) => path.startsWith('days.'))) $min.firstDay = day;
      const operators = Object.entries({ $inc, $max, $min, $set, $unset });
      return Object.fromEntries(operators.filter(([, changes]) => Object.keys(changes).length > 0));
    },
  };
  return delta;
}
