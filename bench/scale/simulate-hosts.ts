import { parseArgs } from 'node:util';
import TinyQueue from 'tinyqueue';
import { createHostLanes } from '../../src/dispatcher/host-lanes.ts';
import { createJobBoard } from '../../src/dispatcher/job-board.ts';
import { createReadAhead } from '../../src/dispatcher/read-ahead.ts';
import { createFairPool } from '../../src/fairness/fair-pool.ts';
import { writeMarkedSection } from '../marked-section.ts';
import { createSimulatedQueue, hostNumber } from './simulated-queue.ts';

// Simulates how the dispatcher's own lanes and read-ahead crawl a list of many hosts, in the order
// of events: the time is that of the model, so hours take minutes.

const HELP = `Usage: node bench/scale/simulate-hosts.ts [--urls N] [--hosts N] [--concurrency N] [--write]

  --write  puts the table into docs/scale.md
`;

/** The most URLs of a host to the fewest: the n-th host has a part of 1 / n to the power of this. */
const SKEW = 0.8;
/** Numbers of a thousand hosts that never answer, and that take long. */
const DEAD = 30;
const SLOW = 10;
const PAGE_MS = { quick: 100, spread: 400, slow: 10_000, dead: 30_000 };
/** Least time between two looks, and how long one takes. */
const TURN_MS = 150;
const LOOK_MS = 20;

interface Case {
  readonly title: string;
  readonly politeness?: {
    readonly maxPerHost: number;
    readonly delayMs: number;
    readonly robotsTxt: boolean;
  };
}

const CASES: readonly Case[] = [
  { title: 'no politeness' },
  {
    title: 'two requests at once at a host, 200 ms apart',
    politeness: { maxPerHost: 2, delayMs: 200, robotsTxt: false },
  },
];

/** A number of [0, 1000) that is always the same for a host. */
const kindOf = (host: number): number => (Math.imul(host + 1, 0x9e3779b1) >>> 8) % 1_000;
const isDead = (host: number): boolean => kindOf(host) < DEAD;

function pageMs(host: number): number {
  const kind = kindOf(host);
  if (kind < DEAD) return PAGE_MS.dead;
  return kind < DEAD + SLOW ? PAGE_MS.slow : PAGE_MS.quick + (kind % PAGE_MS.spread);
}

/** How many URLs each host has. The order of the hosts says nothing of it. */
function countsOf(urls: number, hosts: number): Int32Array {
  const weights = Array.from({ length: hosts }, (_, rank) => (rank + 1) ** -SKEW);
  const sum = weights.reduce((all, each) => all + each, 0);
  const counts = new Int32Array(hosts);
  // A step that has no common divisor with the number of hosts reaches each of them once.
  let host = 0;
  for (const weight of weights) {
    counts[host] = Math.max(1, Math.round((weight / sum) * urls));
    host = (host + 611_953) % hosts;
  }
  return counts;
}

interface Simulated {
  /** When a part of the URLs of hosts that answer was crawled, in seconds. */
  readonly at: ReadonlyMap<number, number>;
  /** The part of the slots that was used until nine tenths were crawled. */
  readonly usedSlots: number;
  readonly tries: { readonly ofDead: number };
  readonly looks: number;
  readonly steps: number;
}

const PARTS = [0.5, 0.9, 0.99, 1];

function simulate(counts: Int32Array, concurrency: number, { politeness }: Case): Simulated {
  const crawler = { accountId: 'simulated', politeness, retryWindowHours: 48 };
  const queue = createSimulatedQueue(counts);
  const lanes = createHostLanes();
  lanes.keep(crawler);
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
      ends.push({ atMs: nowMs + pageMs(host), rid: job.rid, host });
    }
  }

  function end({ rid, host }: { rid: string; host: number }): void {
    board.drop(rid);
    queue.hold(host, -1);
    if (isDead(host)) {
      triesOfDead += 1;
      const told = { answer: { kind: 'away', reason: 'timeout' } } as const;
      const change = lanes.ended(rid, told, nowMs);
      if (change?.trouble !== undefined) {
        for (const job of lanes.surplus(change.host)) board.forget(job.rid);
      }
      return;
    }
    lanes.ended(rid, { answer: { kind: 'answered' } }, nowMs);
    queue.done(host);
    crawled += 1;
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

/** How long the slots are held by all URLs, each tried once, one after the other in any order. */
function inOrderSeconds(counts: Int32Array, concurrency: number): number {
  let total = 0;
  counts.forEach((count, host) => {
    total += count * pageMs(host);
  });
  return total / concurrency / 1_000;
}

function main(): void {
  const { values } = parseArgs({
    options: {
      urls: { type: 'string', default: '10000000' },
      hosts: { type: 'string', default: '1000000' },
      concurrency: { type: 'string', default: '1000' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const concurrency = Number(values.concurrency);
  const counts = countsOf(Number(values.urls), Number(values.hosts));
  const hours = (seconds = 0): string => `${(seconds / 3_600).toFixed(2)} h`;
  const rows = CASES.map((each) => {
    const { at, usedSlots, tries, looks, steps } = simulate(counts, concurrency, each);
    const percent = `${(100 * usedSlots).toFixed(1)} %`;
    const cells = [...PARTS.map((part) => hours(at.get(part))), percent, tries.ofDead, looks];
    return `| ${[each.title, ...cells, (steps / looks).toFixed(0)].join(' | ')} |`;
  });
  const largest = counts.reduce((most, count) => Math.max(most, count), 0);
  const text = [
    `${values.urls} URLs of ${values.hosts} hosts at concurrency ${concurrency}; the largest host has ${largest}. With each URL tried once in the order of pushes, all slots would be held for ${hours(inOrderSeconds(counts, concurrency))}.`,
    '',
    '| | half | 90 % | 99 % | all | slots in use until 90 % | tries of dead hosts | looks | hosts a look |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
  console.log(text);
  if (values.write) {
    writeMarkedSection(new URL('../../docs/scale.md', import.meta.url), 'hosts', text);
  }
}

main();
