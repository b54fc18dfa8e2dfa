import type { UpdateFilter } from 'mongodb';
import type { CrawlerMoments } from '../../domain/crawler.ts';
import type { QueuedJob } from '../../domain/job.ts';
import { type DayField, toDay } from '../../domain/stats.ts';
import { type Tally, tallyEnd } from '../../domain/tally.ts';
import type { CrawlerDocument, Tombstone } from './collections.ts';
import type { BatchId } from './tombstones.ts';

type Counter =
  | 'live'
  | 'liveBytes'
  | 'running'
  | 'runningBytes'
  | 'retrying'
  | 'completed'
  | 'failed'
  | 'deleted'
  | 'purged'
  | 'deliveriesPending'
  | 'wakes';

/** Changes of one crawler's counters and of a day of its history, written in one update. */
export interface Delta {
  readonly day: string;
  /** What happened now, by path. */
  readonly moments: Readonly<Record<string, Date>>;
  /** Increments by path. */
  readonly increments: Readonly<Record<string, number>>;
  /** Change of the account's waiting and retrying URLs. */
  readonly queued: number;
  /** Changes of what the account counts as queued and stored. */
  readonly queuedBytes: number;
  readonly storedBytes: number;
  add(counter: Counter, by: number): void;
  addQueued(by: number): void;
  addBytes(what: 'queuedBytes' | 'storedBytes', by: number): void;
  addDay(field: DayField, by: number): void;
  /** Adds what one event counts as. */
  addTally(tally: Tally): void;
  /** Sets the moment to the delta's. */
  happened(moment: keyof CrawlerMoments): void;
}

/** Starts gathering changes that happened at `now`. */
export function createDelta(now: Date): Delta {
  const day = toDay(now);
  const increments: Record<string, number> = {};
  const moments: Record<string, Date> = {};
  let queued = 0;
  const bytes = { queuedBytes: 0, storedBytes: 0 };
  const add = (path: string, by: number): void => {
    const sum = (increments[path] ?? 0) + by;
    if (sum === 0) delete increments[path];
    else increments[path] = sum;
  };
  const addDay = (field: DayField, by: number): void => add(`days.${day}.${field}`, by);
  const happened = (moment: keyof CrawlerMoments): void => {
    moments[`last.${moment}`] = now;
  };
  return {
    day,
    increments,
    moments,
    get queued() {
      return queued;
    },
    get queuedBytes() {
      return bytes.queuedBytes;
    },
    get storedBytes() {
      return bytes.storedBytes;
    },
    add,
    addBytes: (what, by) => void (bytes[what] += by),
    addQueued: (by) => void (queued += by),
    addDay,
    addTally(tally) {
      if (tally.counter !== undefined) add(tally.counter, 1);
      for (const field of tally.day) addDay(field, 1);
      if (tally.cbStatus !== undefined) add(`days.${day}.byCbStatus.${tally.cbStatus}`, 1);
      if (tally.moment !== undefined) happened(tally.moment);
    },
    happened,
  };
}

/** The update that writes a delta. */
export function toUpdate(delta: Delta): UpdateFilter<CrawlerDocument> {
  const paths = Object.keys(delta.increments);
  return {
    ...(paths.length > 0 ? { $inc: { ...delta.increments, moves: 1 } } : {}),
    ...(Object.keys(delta.moments).length > 0 ? { $max: delta.moments } : {}),
    ...(paths.some((path) => path.startsWith('days.')) ? { $min: { firstDay: delta.day } } : {}),
  };
}

/** An ended job; `gen` is the number of purges before its push. */
export interface Ended {
  readonly rid: string;
  readonly gen: number;
  readonly tombstone: Tombstone;
}

/** A job that went back to the queue. */
export interface Returned {
  readonly gen: number;
  /** Bytes that it counts as in the quotas. */
  readonly size: number;
  /** What it is now. */
  readonly retrying: boolean;
  /** What it was; its start may never have been written. */
  readonly from: QueuedJob['state'];
  /** Whether it was tried, and will be again. */
  readonly again: boolean;
}

/** One batch of ends of one crawler. */
export interface Batch extends BatchId {
  readonly crawlerId: string;
  readonly ended: readonly Ended[];
  readonly returned?: readonly Returned[];
}

/**
 * The changes of a batch at a crawler that was purged `purges` times. Without `returns` the jobs
 * that went back to the queue change the history alone, because a recount has counted them.
 */
export function batchDelta(batch: Batch, purges: number, now: Date, returns: boolean): Delta {
  const delta = createDelta(now);
  for (const each of batch.ended) addEnd(delta, each, purges);
  for (const { gen, size, retrying, from, again } of batch.returned ?? []) {
    if (again) delta.addDay('retries', 1);
    if (!returns) continue;
    if (from !== 'running') {
      if (retrying && from === 'waiting' && gen >= purges) delta.add('retrying', 1);
      continue;
    }
    delta.add('running', -1);
    delta.add('runningBytes', -size);
    if (gen < purges) {
      removeLive(delta, size);
      delta.addTally(tallyEnd({ end: 'purged' }));
    } else {
      if (retrying) delta.add('retrying', 1);
      delta.addQueued(1);
    }
  }
  return delta;
}

function removeLive(delta: Delta, size: number): void {
  delta.add('live', -1);
  delta.add('liveBytes', -size);
  delta.addBytes('queuedBytes', -size);
}

function addEnd(delta: Delta, { gen, tombstone }: Ended, purges: number): void {
  const { from, size = 0, kept = 0 } = tombstone;
  delta.addBytes('storedBytes', kept);
  if (tombstone.delivers !== undefined) delta.add('deliveriesPending', 1);
  // A purge has counted it already: it was in the queue then.
  if (from !== 'running' && gen < purges) {
    if (tombstone.end === 'deleted' || tombstone.end === 'purged') return;
    // Its crawl ended before the purge could take it, and has left a result.
    delta.add('purged', -1);
    delta.addDay('purged', -1);
    delta.addTally(tallyEnd(tombstone));
    return;
  }
  removeLive(delta, size);
  if (from !== 'waiting') delta.add(from, -1);
  if (from === 'running') delta.add('runningBytes', -size);
  else delta.addQueued(-1);
  delta.addTally(tallyEnd(tombstone));
}
