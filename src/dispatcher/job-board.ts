import type { DueJob } from '../domain/job.ts';
import { createTransientMap, type TransientMap } from '../domain/transient-map.ts';
import type { Grant } from '../fairness/fair-pool.ts';
import type { JobOutcome, StartedJob } from '../store/store.ts';
import type { HostLanes } from './host-lanes.ts';

/** A job that was read ahead, and the memory that it holds. */
export interface AheadJob {
  readonly job: DueJob;
  readonly held: Grant;
}

/** What a written outcome leaves in memory. */
export interface KeptPage {
  /** The body before compression, where it is at hand. */
  readonly plain?: Uint8Array;
  /** The memory that the page holds. */
  readonly held: readonly Grant[];
}

/** An ended crawl. An outcome with `startedAt` writes the start of the crawl, too. */
export interface EndedCrawl extends KeptPage {
  readonly outcome: JobOutcome;
}

/** What one turn writes. */
export interface TakenJobs {
  readonly ended: readonly EndedCrawl[];
  readonly started: readonly StartedJob[];
}

/**
 * The jobs of one run. A job is in one of four phases, and only these moves are possible:
 *
 * - `ahead`: it was read from the queue and waits for a slot. `start` makes it `crawling`; `forget`
 *   leaves it to the queue.
 * - `crawling`: its crawl is in flight. `end` makes it `ended`; `drop` removes it.
 * - `ended`: its end waits for a turn. `take` makes it `writing`.
 * - `writing`: a turn writes its end. `written` removes it; `failed` makes it `ended` again.
 *
 * The start of a crawl is written by a turn of its own, or with its end when that comes first. A
 * move from another phase is an error of the caller and throws.
 */
export interface JobBoard {
  readonly ahead: number;
  readonly crawling: number;
  readonly ended: number;
  /** Starts of crawls in flight that no turn has taken. */
  readonly unwrittenStarts: number;
  /** Bytes of the pages that the next turn writes. */
  readonly nextWriteBytes: number;
  isCrawling(rid: string): boolean;
  /** The jobs that wait, in the order in which they were read. */
  jobsAhead(): Iterable<DueJob>;
  /** The rids that the store has as waiting although they are here. */
  waitingInStore(): string[];
  read(entry: AheadJob): void;
  /** Does nothing if the job does not wait here. Gives its memory back. */
  forget(rid: string): void;
  start(start: StartedJob, abort: AbortController): void;
  end(outcome: JobOutcome, kept: KeptPage): void;
  drop(rid: string): void;
  /** Aborts a crawl; does nothing if it is not in flight. */
  abort(rid: string, reason: Error): void;
  abortAll(reason: Error): void;
  /** Takes all starts, and as many ends as fit into one write, into a turn. */
  take(): TakenJobs;
  written(taken: TakenJobs): void;
  failed(taken: TakenJobs): void;
  /** Forgets what waits and what has ended, and gives its memory back. */
  clear(): void;
}

/**
 * Makes an empty board. A turn writes `writeBytes` of pages at most; a larger page comes alone. `lanes`
 * learns which jobs wait for a slot.
 */
export function createJobBoard(
  writeBytes: number,
  lanes?: Pick<HostLanes, 'add' | 'remove'>,
): JobBoard {
  const ahead = createTransientMap<string, AheadJob>();
  const crawling = createTransientMap<string, AbortController>();
  const starts = createTransientMap<string, StartedJob>();
  const writing = createTransientMap<string, EndedCrawl>();
  let ended: EndedCrawl[] = [];

  function nextWrite(): { readonly count: number; readonly bytes: number } {
    let count = 0;
    let bytes = 0;
    for (const { outcome } of ended) {
      const next = bytes + pageBytes(outcome);
      if (count > 0 && next > writeBytes) break;
      count += 1;
      bytes = next;
    }
    return { count, bytes };
  }

  function forget(rid: string): void {
    const entry = ahead.get(rid);
    if (entry === undefined) return;
    entry.held.release();
    ahead.delete(rid);
    lanes?.remove(entry.job);
  }

  return {
    get ahead() {
      return ahead.size;
    },
    get crawling() {
      return crawling.size;
    },
    get ended() {
      return ended.length;
    },
    get unwrittenStarts() {
      return starts.size;
    },
    get nextWriteBytes() {
      return nextWrite().bytes;
    },
    isCrawling: crawling.has,
    *jobsAhead() {
      for (const { job } of ahead.values()) yield job;
    },
    waitingInStore: () => [
      ...ahead.keys(),
      ...starts.keys(),
      ...ended.flatMap(({ outcome: { rid, startedAt } }) => (startedAt ? [rid] : [])),
    ],
    read(entry) {
      ahead.set(entry.job.rid, entry);
      lanes?.add(entry.job);
    },
    forget,
    start(start, abort) {
      if (!ahead.has(start.rid)) throw new Error(`job ${start.rid} does not wait for a slot`);
      forget(start.rid);
      crawling.set(start.rid, abort);
      starts.set(start.rid, start);
    },
    end(outcome, kept) {
      const { rid } = outcome;
      remove(crawling, rid);
      const startedAt = starts.get(rid)?.startedAt;
      starts.delete(rid);
      ended.push({ outcome: startedAt ? { ...outcome, startedAt } : outcome, ...kept });
    },
    drop(rid) {
      remove(crawling, rid);
      starts.delete(rid);
    },
    abort: (rid, reason) => crawling.get(rid)?.abort(reason),
    abortAll(reason) {
      for (const controller of crawling.values()) controller.abort(reason);
    },
    take() {
      const taken = ended.splice(0, nextWrite().count);
      for (const each of taken) writing.set(each.outcome.rid, each);
      const started = [...starts.values()];
      starts.clear();
      return { ended: taken, started };
    },
    written({ ended: taken }) {
      for (const { outcome } of taken) remove(writing, outcome.rid);
    },
    failed({ ended: taken, started }) {
      for (const { outcome } of taken) remove(writing, outcome.rid);
      ended.unshift(...taken);
      for (const start of started) {
        const { rid, startedAt } = start;
        if (crawling.has(rid)) starts.set(rid, start);
        // The crawl has ended during the turn: its end writes its start.
        ended = ended.map((each) =>
          each.outcome.rid === rid ? { ...each, outcome: { ...each.outcome, startedAt } } : each,
        );
      }
    },
    clear() {
      for (const rid of ahead.keys()) forget(rid);
      for (const { held } of ended.splice(0)) for (const grant of held) grant.release();
    },
  };
}

/** Bytes of the page that an outcome writes. */
export function pageBytes(outcome: JobOutcome): number {
  return 'record' in outcome ? outcome.record.body.byteLength : 0;
}

function remove(phase: TransientMap<string, unknown>, rid: string): void {
  if (!phase.delete(rid)) throw new Error(`job ${rid} is not in the phase that it should leave`);
}
