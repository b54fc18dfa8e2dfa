import type { UpdateFilter } from 'mongodb';
import type { CrawlerMoments } from '../../domain/crawler.ts';
import type { QueuedJob } from '../../domain/job.ts';
import { type DayField, toDay } from '../../domain/stats.ts';
import { type Tally, tallyEnd } from '../../domain/tally.ts';
import type { AccountChange } from './account-increments.ts';
import type { Counter, CountsDocument } from './counts-document.ts';

/** What a change of the counters has to know of a job. */
export interface CountedJob {
  readonly state: QueuedJob['state'];
  readonly size: number;
}

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
  /** Moves a job from its state to another; undefined for one that was or is not there. */
  move(size: number, from: QueuedJob['state'] | undefined, to?: QueuedJob['state']): void;
  /** A running job that a purge has passed over goes back to the queue: it is purged, too. */
  purge(job: CountedJob): void;
  /** The update that writes it. */
  toUpdate(): UpdateFilter<CountsDocument>;
}

/** Starts gathering changes that happened at `now`. */
export function createDelta(now: Date): Delta {
  const day = toDay(now);
  const increments: Record<string, number> = {};
  const moments: Record<string, Date> = {};
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
      if (tally.moment !== undefined) delta.happened(tally.moment);
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
    purge({ state, size }) {
      delta.move(size, state);
      delta.addTally(tallyEnd({ end: 'purged' }));
    },
    toUpdate() {
      const paths = Object.keys(increments);
      return {
        ...(paths.length > 0 ? { $inc: increments } : {}),
        ...(Object.keys(moments).length > 0 ? { $max: moments } : {}),
        ...(paths.some((path) => path.startsWith('days.')) ? { $min: { firstDay: day } } : {}),
      };
    },
  };
  return delta;
}
