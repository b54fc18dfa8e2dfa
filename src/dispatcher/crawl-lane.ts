import type { Crawler } from '../domain/crawler.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import type { JobOutcome } from '../store/store.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { createInFlight, WorkAborted } from './in-flight.ts';

/** What one lane needs beside the dispatcher's own. */
export interface CrawlLaneDeps extends Pick<DispatcherDeps, 'crawlJob' | 'crawlBytes' | 'logger'> {
  readonly crawlerId: string;
  /** Crawls of the whole process. */
  readonly slots: FairPool;
  /** Bytes of the whole process. */
  readonly memory: FairPool;
  /** Called when a crawl has ended, or when there is room for one again. */
  readonly onChange: () => void;
}

/** Room for crawls that are about to be claimed. What is not needed is given back by `start` and `cancel`. */
export interface Reservation {
  /** How many jobs to claim. */
  readonly limit: number;
  /** Of the jobs' bodies together. */
  readonly maxBytes: number;
  /** Starts what was claimed. */
  start(jobs: readonly QueuedJob[]): void;
  cancel(): void;
}

/** Ends that a turn writes. */
export interface EndedBatch {
  readonly outcomes: readonly JobOutcome[];
  /** Hands over the memory that one outcome's page holds: `release` leaves it alone then. */
  keep(rid: string): readonly Grant[];
  /** Gives back the memory of their pages, when they have been written. */
  release(): void;
}

/**
 * The crawls of one crawler's run: which are in flight, and which ends are not written yet. A crawl has a slot and memory of the process's
 * before its job is claimed, so no job is claimed without a place to run.
 */
export interface CrawlLane {
  readonly inFlight: number;
  /** Ends that no turn has taken yet. */
  readonly unwritten: number;
  /** Takes ends into a turn: all of them, or as many as have the bytes of one write. */
  take(): EndedBatch;
  /** Room for as many crawls as the crawler may start now; `onChange` is called when there is more. */
  reserve(crawler: Crawler): Reservation;
  abort(rid: string): void;
  abortAll(reason: WorkAborted): void;
  /** Forgets the ends that were not written, and gives everything back. */
  close(): void;
}

/** Bodies of POST and PUT that one claim may bring beside what each crawl reserves. */
const CLAIM_BYTES = 2 * 1024 * 1024;
/** Pages of one write; at least one page. */
const WRITE_BYTES = 24 * 1024 * 1024;

interface Ended {
  readonly outcome: JobOutcome;
  readonly held: readonly Grant[];
}

/** Makes a lane in which nothing is in flight. */
export function createCrawlLane(deps: CrawlLaneDeps): CrawlLane {
  const { crawlerId, slots, memory, crawlBytes, logger } = deps;
  const crawls = createInFlight(deps.onChange);
  const ended: Ended[] = [];
  /** Slots that came after a wait, for the next reservation. */
  const kept: Grant[] = [];
  let waiting: AbortController | undefined;
  let closed = false;

  const bytesOf = ({ outcome }: Ended): number =>
    'record' in outcome ? outcome.record.body.byteLength : 0;

  function startCrawl(job: QueuedJob, crawler: Crawler, slot: Grant, base: Grant): void {
    crawls.start(job.rid, async (signal) => {
      try {
        const { outcome, held } = await deps.crawlJob(job, crawler, signal);
        base.shrink('record' in outcome ? outcome.record.body.byteLength : 0);
        if (closed) {
          base.release();
          held?.release();
          return;
        }
        ended.push({ outcome, held: held === undefined ? [base] : [base, held] });
      } catch (error) {
        base.release();
        if (!signal.aborted) logger.error({ err: error, rid: job.rid }, 'a crawl broke off');
        if (error instanceof WorkAborted && error.end === 'dropped') return;
        const { rid, attempt } = job;
        ended.push({ outcome: { kind: 'release', rid, crawlerId, attempt }, held: [] });
      } finally {
        slot.release();
      }
    });
  }

  /** Waits for a slot, or for memory, that others have now. */
  function waitFor(pool: FairPool, amount: number, claimant: Claimant): void {
    if (waiting !== undefined) return;
    const controller = new AbortController();
    waiting = controller;
    pool.acquire(claimant, amount, controller.signal).then(
      (grant) => {
        waiting = undefined;
        // What was granted in the moment of closing is nobody's.
        if (pool === slots && !closed) kept.push(grant);
        else grant.release();
        deps.onChange();
      },
      () => undefined,
    );
  }

  return {
    get inFlight() {
      return crawls.size;
    },
    get unwritten() {
      return ended.length;
    },
    take() {
      let count = 0;
      let bytes = 0;
      for (const each of ended) {
        bytes += bytesOf(each);
        if (count > 0 && bytes > WRITE_BYTES) break;
        count += 1;
      }
      const taken = ended.splice(0, count);
      const held = new Map(taken.map((each) => [each.outcome.rid, each.held]));
      return {
        outcomes: taken.map(({ outcome }) => outcome),
        keep(rid) {
          const grants = held.get(rid) ?? [];
          held.delete(rid);
          return grants;
        },
        release() {
          for (const grant of [...held.values()].flat()) grant.release();
        },
      };
    },
    reserve(crawler) {
      const claimant = { accountId: crawler.accountId, crawlerId };
      const wanted = Math.max(crawler.concurrency - crawls.size, 0);
      const taken = kept.splice(0);
      while (taken.length < wanted) {
        const slot = slots.tryAcquire(claimant, 1);
        if (slot === undefined) break;
        taken.push(slot);
      }
      if (wanted > 0 && taken.length === 0) waitFor(slots, 1, claimant);
      const room = Math.min(taken.length * crawlBytes + CLAIM_BYTES, memory.available(claimant));
      const base = taken.length > 0 ? memory.tryAcquire(claimant, room) : undefined;
      const limit = Math.min(wanted, taken.length, Math.floor((base?.amount ?? 0) / crawlBytes));
      if (taken.length > 0 && limit === 0) waitFor(memory, crawlBytes, claimant);
      const cancel = (): void => {
        for (const slot of taken.splice(0)) slot.release();
        base?.release();
      };
      return {
        limit,
        maxBytes: Math.max((base?.amount ?? 0) - limit * crawlBytes, 0),
        start(jobs) {
          for (const job of jobs) {
            const slot = taken.pop();
            if (slot === undefined || base === undefined) throw new Error('more than reserved');
            const bytes = crawlBytes + (job.body?.byteLength ?? 0);
            startCrawl(job, crawler, slot, base.split(bytes));
          }
          cancel();
        },
        cancel,
      };
    },
    abort: (rid) => void crawls.abort(rid, new WorkAborted('dropped')),
    abortAll: crawls.abortAll,
    close() {
      closed = true;
      waiting?.abort();
      crawls.abortAll(new WorkAborted('dropped'));
      for (const grant of ended.splice(0).flatMap(({ held }) => held)) grant.release();
      for (const slot of kept.splice(0)) slot.release();
    },
  };
}
