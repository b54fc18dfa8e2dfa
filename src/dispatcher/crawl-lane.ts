import type { Crawler } from '../domain/crawler.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import type { JobOutcome } from '../store/store.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { createInFlight, WorkAborted } from './in-flight.ts';

/** What the lane works with. */
export interface CrawlLaneDeps extends Pick<DispatcherDeps, 'crawlJob' | 'crawlBytes' | 'logger'> {
  readonly crawlerId: string;
  /** The process's crawls in flight. */
  readonly slots: FairPool;
  /** The process's bytes in flight. */
  readonly memory: FairPool;
  /** Called when a crawl has ended, or when there is room for one again. */
  readonly onChange: () => void;
}

/** Room for jobs that are about to be claimed. `start` and `cancel` give back the unused part. */
export interface Reservation {
  /** How many jobs to claim. */
  readonly limit: number;
  /** Most bytes of their bodies together. */
  readonly maxBytes: number;
  /** Starts the claimed jobs. */
  start(jobs: readonly QueuedJob[]): void;
  cancel(): void;
}

/** Ended crawls that a turn writes. */
export interface EndedBatch {
  readonly outcomes: readonly JobOutcome[];
  /** Hands over the memory that one outcome's page holds; `release` does not give it back then. */
  keep(rid: string): readonly Grant[];
  /** Gives back the memory of the pages; called when they have been written. */
  release(): void;
}

/**
 * The crawls of one crawler's run: those in flight, and those that have ended and are not written
 * yet. A job is claimed only when the process has a slot and memory for its crawl.
 */
export interface CrawlLane {
  readonly inFlight: number;
  /** Ended crawls that no turn has taken yet. */
  readonly unwritten: number;
  /** Bytes of the pages that the next turn writes. */
  readonly nextWriteBytes: number;
  /** Takes ended crawls into a turn: all of them, or as many as fit into one write. */
  takeEnded(): EndedBatch;
  /**
   * Reserves room for as many crawls as the crawler may start now. When it gets less, it waits for
   * more and calls `onChange`.
   */
  reserve(crawler: Crawler): Reservation;
  abort(rid: string): void;
  abortAll(reason: WorkAborted): void;
  /** Aborts and drops everything, and gives all room back. */
  close(): void;
}

/** Bytes for request bodies that one claim may bring beside `crawlBytes` for each crawl. */
const CLAIM_BYTES = 2 * 1024 * 1024;
/** Bytes of pages in one write; a larger page is written alone. */
const WRITE_BYTES = 4 * 1024 * 1024;

interface Ended {
  readonly outcome: JobOutcome;
  readonly held: readonly Grant[];
}

/** Makes a lane in which nothing is in flight. */
export function createCrawlLane(deps: CrawlLaneDeps): CrawlLane {
  const { crawlerId, slots, memory, crawlBytes, logger } = deps;
  const crawls = createInFlight(deps.onChange);
  const ended: Ended[] = [];
  /** Slots granted after a wait; the next reservation uses them. */
  const granted: Grant[] = [];
  let waiting: AbortController | undefined;
  let closed = false;

  function startCrawl(job: QueuedJob, crawler: Crawler, slot: Grant, base: Grant): void {
    crawls.start(job.rid, async (signal) => {
      try {
        const { outcome, held } = await deps.crawlJob(job, crawler, signal);
        base.shrink(pageBytes(outcome));
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

  /** Returns how many ends, of how many bytes, the next turn writes. */
  function nextWrite(): { readonly count: number; readonly bytes: number } {
    let count = 0;
    let bytes = 0;
    for (const each of ended) {
      const next = bytes + pageBytes(each.outcome);
      if (count > 0 && next > WRITE_BYTES) break;
      count += 1;
      bytes = next;
    }
    return { count, bytes };
  }

  /** Waits for a slot, or for memory, that others use now. */
  function waitFor(pool: FairPool, amount: number, claimant: Claimant): void {
    if (waiting !== undefined) return;
    const controller = new AbortController();
    waiting = controller;
    pool.acquire(claimant, amount, controller.signal).then(
      (grant) => {
        waiting = undefined;
        // A slot granted in the moment of closing has no use.
        if (pool === slots && !closed) granted.push(grant);
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
    get nextWriteBytes() {
      return nextWrite().bytes;
    },
    takeEnded() {
      const taken = ended.splice(0, nextWrite().count);
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
      const taken = granted.splice(0);
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
            if (slot === undefined || base === undefined)
              throw new Error('more jobs than reserved');
            const bytes = crawlBytes + (job.body?.byteLength ?? 0);
            startCrawl(job, crawler, slot, base.split(bytes));
          }
          cancel();
        },
        cancel,
      };
    },
    abort: (rid) => crawls.abort(rid, new WorkAborted('dropped')),
    abortAll: crawls.abortAll,
    close() {
      closed = true;
      waiting?.abort();
      crawls.abortAll(new WorkAborted('dropped'));
      for (const grant of ended.splice(0).flatMap(({ held }) => held)) grant.release();
      for (const slot of granted.splice(0)) slot.release();
    },
  };
}

function pageBytes(outcome: JobOutcome): number {
  return 'record' in outcome ? outcome.record.body.byteLength : 0;
}
