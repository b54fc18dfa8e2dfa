import TinyQueue from 'tinyqueue';
import { createHostLanes } from '../../src/dispatcher/host-lanes.ts';
import { createJobBoard } from '../../src/dispatcher/job-board.ts';
import { createReadAhead } from '../../src/dispatcher/read-ahead.ts';
import { createFairPool } from '../../src/fairness/fair-pool.ts';
import { createSimulatedQueue, hostNumber } from './simulated-queue.ts';

/** Numbers of a thousand hosts that never answer, and that take long. */
const DEAD = 30;
const SLOW = 10;
const PAGE_MS = { quick: 100, spread: 400, slow: 10_000, dead: 30_000 };
/** Least time between two looks, and how long one takes. */
const TURN_MS = 150;
const LOOK_MS = 20;

/** How polite a simulated crawler is. */
export interface SimulatedCrawler {
  readonly politeness?: {
    readonly maxPerHost: number;
    readonly delayMs: number;
    readonly robotsTxt: boolean;
  };
}

/** Which hosts never answer, by their numbers. */
export type IsDead = (host: number) => boolean;

/** A number of [0, 1000) that is always the same for a host. */
const kindOf = (host: number): number => (Math.imul(host + 1, 0x9e3779b1) >>> 8) % 1_000;
/** Three hosts of a hundred. */
export const isUsuallyDead: IsDead = (host) => kindOf(host) < DEAD;

/** How long a page of a host takes. */
export function pageMs(host: number, isDead: IsDead = isUsuallyDead): number {
  if (isDead(host)) return PAGE_MS.dead;
  const kind = kindOf(host);
  return kind < DEAD + SLOW ? PAGE_MS.slow : PAGE_MS.quick + (kind % PAGE_MS.spread);
}

/** What has become of a simulated list. */
export interface Simulated {
  /** When a part of the URLs of hosts that answer was crawled, in seconds. */
  readonly at: ReadonlyMap<number, number>;
  /** The part of the slots that was used until nine tenths were crawled. */
  readonly usedSlots: number;
  readonly tries: { readonly ofDead: number };
  readonly looks: number;
  readonly steps: number;
}

/** Parts of the URLs whose times are told. */
export const PARTS = [0.5, 0.9, 0.99, 1];

/**
 * Crawls a list by the dispatcher's own lanes and read-ahead until all URLs of hosts that answer are
 * crawled, in the order of events. `counts` has the number of URLs of each host. `onPercent` is called
 * for each percent of these URLs, with the seconds of the model.
 */
export function simulate(
  counts: Int32Array,
  concurrency: number,
  { politeness }: SimulatedCrawler,
  isDead: IsDead = isUsuallyDead,
  onPercent: (percent: number, seconds: number) => void = () => {},
): Simulated {
  const crawler = { accountId: 'simulated', politeness, retryWindowHours: 48 };
  const queue = createSimulatedQueue(counts);
  const lanes = createHostLanes();
  lanes.keep(crawler, concurrency);
  let nowMs = 0;
  const numberOf = ({ host }: { host: string }): number => hostNumber(host);
  const board = createJobBoard(1, {
    add(job) {
      queue.hold(numberOf(job), 1);
      lanes.add(job);
    },
    remove(job) {
      queue.hold(numberOf(job), -1);
      lanes.remove(job);
    },
  });
  const ahead = createReadAhead({
    crawlerId: 'simulated',
    memory: createFairPool({ name: 'simulated', capacity: 1024 ** 3 }),
    board,
    lanes,
    clock: { now: () => new Date(nowMs) },
  });
  const ends = new TinyQueue<{ atMs: number; rid: string; host: number }>(
    [],
    (a, b) => a.atMs - b.atMs,
  );
  let living = 0;
  counts.forEach((count, host) => {
    if (!isDead(host)) living += count;
  });
  const at = new Map<number, number>();
  let crawled = 0;
  let nextPercent = 1;
  let triesOfDead = 0;
  let looks = 0;
  let nextLookMs = 0;
  let usedMs = 0;

  function start(): void {
    while (ends.length < concurrency) {
      const job = ahead.first(new Date(nowMs));
      if (job === undefined) return;
      const host = numberOf(job);
      board.start({ rid: job.rid, attempt: 1, startedAt: new Date(nowMs) }, new AbortController());
      if (lanes.started(job, nowMs)) lanes.sent(job.rid, nowMs);
      ahead.started(job);
      queue.hold(host, 1);
      ends.push({ atMs: nowMs + pageMs(host, isDead), rid: job.rid, host });
    }
  }

  function end({ rid, host }: { rid: string; host: number }): void {
    board.drop(rid);
    queue.hold(host, -1);
    if (isDead(host)) {
      triesOfDead += 1;
      const told = { answer: { kind: 'away', reason: 'timeout' } } as const;
      lanes.ended(rid, told, nowMs);
      return;
    }
    lanes.ended(rid, { answer: { kind: 'answered' } }, nowMs);
    queue.done(host);
    crawled += 1;
    if (crawled >= nextPercent * (living / 100)) onPercent(nextPercent++, nowMs / 1_000);
    for (const part of PARTS) {
      if (crawled >= living * part && !at.has(part)) at.set(part, nowMs / 1_000);
    }
  }

  function look(): void {
    const wanted = ahead.beginLook(crawler, concurrency);
    if (wanted === undefined) return;
    looks += 1;
    ahead.endLook(queue.look(wanted));
    ahead.cancelLook();
    nextLookMs = nowMs + TURN_MS;
  }

  while (crawled < living) {
    if (ahead.wantsMore && nowMs >= nextLookMs) look();
    start();
    const nextMs = Math.min(
      ends.peek()?.atMs ?? Number.POSITIVE_INFINITY,
      ends.length < concurrency ? (lanes.nextAt(nowMs) ?? Number.POSITIVE_INFINITY) : 1e15,
      ahead.wantsMore ? Math.max(nextLookMs, nowMs + LOOK_MS) : Number.POSITIVE_INFINITY,
    );
    if (!Number.isFinite(nextMs)) throw new Error('nothing is left to happen');
    if (!at.has(0.9)) usedMs += ends.length * (nextMs - nowMs);
    nowMs = Math.max(nowMs, nextMs);
    for (let next = ends.peek(); next !== undefined && next.atMs <= nowMs; next = ends.peek()) {
      ends.pop();
      end(next);
    }
  }
  const usedSlots = usedMs / ((at.get(0.9) ?? 1) * 1_000 * concurrency);
  return { at, usedSlots, tries: { ofDead: triesOfDead }, looks, steps: queue.steps };
}
