import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import { createNoise, type Noise } from '../noise.ts';
import { createSetClock, type SetClock } from '../set-clock.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { NORMAL } from '../tokens.ts';
import { expectDrained, findImbalances } from './balance.ts';
import { CHAOS_CRAWLERS, type ChaosCrawler } from './chaos-crawlers.ts';
import { type ChaosLoad, startLoad } from './chaos-load.ts';
import { openChaosNetwork } from './chaos-network.ts';
import { isAged, repeatedBy } from './chaos-pages.ts';
import { openChaosReceiver } from './chaos-receiver.ts';
import { type ChaosSite, openChaosSite } from './chaos-site.ts';
import {
  type Disturbance,
  type Fleet,
  type KillableDatabase,
  startFleet,
  USUAL_DISTURBANCES,
} from './fleet.ts';
import { watchHolders } from './slot-holders.ts';
import { measureSlots, type UsedSlots } from './slot-usage.ts';

/** What is run. */
export interface ChaosOptions {
  /** How long the fleet is disturbed; what comes after is bounded too. */
  readonly seconds: number;
  /** The disturbances follow from it. */
  readonly seed: number;
  readonly processes: number;
  /** What is done to them; default `USUAL_DISTURBANCES`. */
  readonly only?: readonly Disturbance[] | undefined;
  /** Where the processes keep what they do. */
  readonly env: Readonly<Record<string, string>>;
  readonly database?: KillableDatabase | undefined;
  /** Ends the run at once; it throws then. */
  readonly signal?: AbortSignal;
}

/** What a crawler went through. */
export interface ChaosRow {
  readonly crawler: ChaosCrawler;
  readonly acknowledged: number;
  /** Most crawls at one moment. */
  readonly most: number;
  /** The slots that were used while the fleet was whole. */
  readonly usage: UsedSlots | undefined;
  /** Pages that were crawled again without need. */
  readonly again: number;
  /** Failed crawls that were pushed again. */
  readonly pushedAgain: number;
  /** Pages that came from storage without a request, at least. */
  readonly fromStorage: number;
  /** The longest time from acknowledgement to crawl, in seconds. */
  readonly longestWait: number;
}

/** How it ended. */
export interface ChaosReport {
  /** A sentence for each promise that was broken; empty when all was well. */
  readonly violations: readonly string[];
  readonly rows: readonly ChaosRow[];
  readonly disturbances: Readonly<Record<Disturbance, number>>;
  /** The longest time that a killed database was unavailable, in seconds. */
  readonly longestOutage: number;
  /** What the database said last each time it ended by itself. It was started again. */
  readonly crashes: readonly string[];
  /** Deliveries beyond the first of a `rid`. */
  readonly deliveredAgain: number;
  /** Seconds for which the use of slots was measured. */
  readonly measuredSeconds: number;
  /** The last lines of the processes' logs. */
  readonly log: string;
}

/** The fleet has this long to use its slots again. */
const SETTLE_MS = 5_000;
/** All that was acknowledged has this long to end after the last disturbance. */
const DRAIN_MS = 180_000;

/** Most that a clock is wrong. */
const MAX_WRONG_MS = 3_600_000;

/** Settings of the processes of a chaos run. */
const SETTINGS = {
  WEBHOOK_RETRY_SCHEDULE: '1s,1s,1s,1s,1s,1s,1s,1s',
  SHUTDOWN_SECONDS: '10',
  NETWORK_ALLOW: '127.0.0.0/8',
};

/**
 * Runs a fleet under load, disturbs it at random, lets it end its work and strikes the balance.
 * Everything that it started has ended when it returns.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { processes, env, database } = options;
  await using site = await openChaosSite();
  await using receiver = await openChaosReceiver();
  const { only = USUAL_DISTURBANCES, seed } = options;
  const uri = only.includes('network') ? env.MONGODB_URI : undefined;
  await using network = uri === undefined ? undefined : await openChaosNetwork(uri, seed);
  await using folder = await temporaryFolder();
  const clocks = only.includes('clock') ? await wrongClocks(folder.path, processes, seed) : [];
  await using fleet = await startFleet({
    env: { ...SETTINGS, ...env, ...(network && { MONGODB_URI: network.uri }) },
    places: processes,
    database,
    clocks,
    network,
  });
  for (const { name, delivery, concurrency, politeness, together } of CHAOS_CRAWLERS) {
    const batch =
      together === undefined ? {} : { deliver_batch: { max_results: together, max_ms: 300 } };
    const callback = delivery === 'webhook' ? { callback_url: receiver.url, ...batch } : {};
    const [service] = fleet.running();
    const pace =
      politeness === undefined
        ? {}
        : {
            politeness: {
              max_per_host: politeness.maxPerHost,
              delay_ms: politeness.delayMs,
              robots_txt: false,
            },
          };
    const body = { name, concurrency, ...callback, ...pace };
    const made = await service?.rest('POST', `/crawler/${NORMAL}`, body);
    if (made?.status !== 200) throw new Error(`no crawler: ${made?.text}`);
  }
  const loads = new Map(
    CHAOS_CRAWLERS.map(
      (crawler) => [crawler, startLoad(fleet, site, crawler, options.signal)] as const,
    ),
  );
  await using holders = env.MONGODB_URI === undefined ? undefined : watchHolders(env.MONGODB_URI);
  const usage = measureSlots(fleet, site, loads, holders, SETTLE_MS);
  const violations: string[] = [];
  try {
    await disturbAtRandom(fleet, options);
  } finally {
    await usage.stop();
    const ends = await Promise.allSettled([...loads.values()].map((load) => load.stop()));
    for (const end of ends) if (end.status === 'rejected') violations.push(String(end.reason));
  }
  options.signal?.throwIfAborted();
  try {
    const [service] = fleet.running();
    if (service === undefined) throw new Error('no process runs');
    const drained = () =>
      eventually(() => expectDrained(service), {
        timeoutMs: DRAIN_MS,
        what: 'the end of all work',
      });
    await drained();
    await Promise.all([...loads.values()].map((load) => load.pushRestAgain()));
    await drained();
  } catch (error) {
    violations.push(error instanceof Error ? error.message : String(error));
  }
  violations.push(
    ...(await findImbalances({ services: fleet.running(), loads, site, receiver })),
    ...fleet.faults,
  );
  return {
    violations,
    rows: [...loads].map(([crawler, load]) => ({
      crawler,
      acknowledged: load.rids.size,
      most: site.seen(crawler.name).most,
      usage: usage.of(crawler.name),
      again: site.seen(crawler.name).again,
      pushedAgain: load.again.size,
      fromStorage: countFromStorage(load, site, crawler),
      longestWait: longestWait(load, site, crawler),
    })),
    disturbances: fleet.done,
    longestOutage: fleet.longestOutage,
    crashes: fleet.crashes,
    deliveredAgain: receiver.again,
    measuredSeconds: usage.seconds,
    log: fleet.log(),
  };
}

/** A clock for each place, wrong by up to an hour. */
async function wrongClocks(folder: string, places: number, seed: number): Promise<SetClock[]> {
  const noise = createNoise(seed);
  const clocks: SetClock[] = [];
  for (let place = 0; place < places; place += 1) {
    const path = join(folder, String(place));
    await mkdir(path);
    const clock = createSetClock(path);
    await clock.set(wrongBy(noise));
    clocks.push(clock);
  }
  return clocks;
}

/** Milliseconds by which a clock is wrong. */
const wrongBy = (noise: Noise): number => noise.int(2 * MAX_WRONG_MS) - MAX_WRONG_MS;

/**
 * Storms of several disturbances each; after every other one the fleet is whole for a while. The
 * order, the places and the times follow from the seed.
 */
async function disturbAtRandom(
  fleet: Fleet,
  { seconds, seed, processes, only = USUAL_DISTURBANCES, database, signal }: ChaosOptions,
): Promise<void> {
  const noise = createNoise(seed);
  const absent = database === undefined ? 'database' : undefined;
  const kinds = only.filter((kind) => kind !== absent);
  if (kinds.length === 0) throw new Error('there is nothing that could be disturbed');
  const until = performance.now() + seconds * 1_000;
  const left = (): number => (signal?.aborted ? 0 : until - performance.now());
  // Longer than a lease, at times; never much longer than the run.
  const longestStop = Math.min(20_000, seconds * 300);
  const pause = (ms: number): Promise<void> =>
    wait(Math.max(0, Math.min(ms, left())), undefined, signal && { signal }).catch(() => undefined);
  await pause(2_000);
  for (let storms = 1; left() > 0; storms += 1) {
    const underWay: Promise<void>[] = [];
    for (let events = 2 + noise.int(4); events > 0 && left() > 0; events -= 1) {
      const what = noise.pick(kinds);
      const place = noise.int(processes);
      const ms = lengthOf(what, noise, longestStop);
      const disturbed = fleet.disturb(what, place, ms);
      // Awaited below; a failure must not end the process before that.
      disturbed.catch(() => undefined);
      underWay.push(disturbed);
      await pause(300 + noise.int(2_500));
    }
    await Promise.all(underWay);
    await pause(storms % 2 === 0 ? SETTLE_MS + 3_000 + noise.int(5_000) : noise.int(2_000));
  }
}

/** URLs with `max_age` whose page was requested no more than once, before them. */
function countFromStorage(load: ChaosLoad, site: ChaosSite, crawler: ChaosCrawler): number {
  if (crawler.removals) return 0;
  const { requests } = site.seen(crawler.name);
  const aged = [...load.rids.keys()].filter((n) => isAged(crawler, n));
  return aged.filter((n) => (requests.get(repeatedBy(n)) ?? 0) <= 1).length;
}

/** How long a disturbance takes; of a clock, by how much it is wrong. */
function lengthOf(what: Disturbance, noise: Noise, longestStop: number): number {
  if (what === 'clock') return wrongBy(noise);
  return what === 'stop' ? 500 + noise.int(longestStop) : noise.int(3_000);
}

function longestWait(load: ChaosLoad, site: ChaosSite, crawler: ChaosCrawler): number {
  const { firstAt } = site.seen(crawler.name);
  // The page of a URL that was removed may be requested later, by the URL that repeats it.
  const aged = crawler.removals ? [...load.rids.keys()].filter((n) => isAged(crawler, n)) : [];
  const repeated = new Set(aged.map(repeatedBy));
  let longest = 0;
  for (const [n, at] of load.acknowledgedAt) {
    if (repeated.has(n)) continue;
    longest = Math.max(longest, (firstAt.get(n) ?? at) - at);
  }
  return longest / 1_000;
}
