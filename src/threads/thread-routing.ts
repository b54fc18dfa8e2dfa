import { createLruMap } from '../domain/lru-map.ts';
import type { CrawlTask } from '../engine/engine.ts';

/** A crawl's place in a thread. */
export interface ThreadPlace {
  readonly thread: number;
  /** To be called once, when the crawl has ended. */
  leave(): void;
}

/** Decides which thread a crawl runs in. */
export interface ThreadRouting {
  /**
   * The place of a crawl. Few crawls of one host share a thread, and so its connections. More of
   * them are spread evenly, because one that compresses a page keeps the others of its thread
   * waiting. They share one thread, too, while other accounts crawl.
   */
  enter(task: CrawlTask): ThreadPlace;
  /** The thread for work that shares nothing with other work. */
  leastLoaded(): number;
  /** Remembers for ten minutes that a crawl of the host ended its thread. */
  suspect(task: CrawlTask): void;
  isSuspect(task: CrawlTask): boolean;
}

/** The threads as they are now. */
export interface RoutedThreads {
  readonly count: number;
  /**
   * Number of threads, the first ones, that are used while several accounts crawl. A single account
   * uses all of them.
   */
  readonly shared: number;
  /** Whether an account that is alone has all threads, and the crawls of a host are spread over them. */
  readonly spreads: boolean;
  /** The number of a thread's requests in flight. */
  inFlight(thread: number): number;
  /** Whether it has loaded its program. */
  isUp(thread: number): boolean;
  /** Starts it if it does not run. */
  prepare(thread: number): void;
}

/** Crawls of a host in flight before they are spread over one thread more. */
const HOST_SHARE = 10;
/** An account that started a crawl so recently crawls. */
const CRAWLING_MS = 10_000;
const MAX_HOSTS = 10_000;
const MAX_SUSPECTS = 1_000;
const SUSPECT_MS = 10 * 60_000;

/** The crawls of one host. */
interface HostPlaces {
  /** The first of its threads; further ones are those after it. */
  home: number;
  /** In flight in each thread. */
  readonly counts: number[];
}

/**
 * Makes the routing over threads 0 to `count` - 1. A thread that is not up yet is started, and used
 * from when it is up; until then others do its work if there are any.
 */
export function createThreadRouting(threads: RoutedThreads): ThreadRouting {
  const { count } = threads;
  const hosts = createLruMap<string, HostPlaces>({ maxEntries: MAX_HOSTS });
  const suspects = createLruMap<string, number>({ maxEntries: MAX_SUSPECTS });
  const all = Array.from({ length: count }, (_, thread) => thread);
  const shared = all.slice(0, threads.shared);
  /** Whose crawl was the last, and until when there is more than one account that crawls. */
  let lastAccount: string | undefined;
  let sharedUntil = 0;

  const leastOf = (some: readonly number[]): number | undefined =>
    leastBy(some, (thread) => threads.inFlight(thread));

  /** That one of the threads with the least which is up; one that is not is made ready for later. */
  function chooseUp(some: readonly number[], load: (thread: number) => number): number {
    for (const thread of some) if (!threads.isUp(thread)) threads.prepare(thread);
    const isUp = (thread: number): boolean => threads.isUp(thread);
    return leastBy(some.filter(isUp), load) ?? leastOf(shared.filter(isUp)) ?? some[0] ?? 0;
  }

  /**
   * The places of a host, whose home is one of the threads that are used now. A host that has nothing
   * in flight moves away from a thread that is much busier than another, and from one that has ended.
   */
  function placesOf(host: string, used: readonly number[]): HostPlaces {
    const least = leastOf(used) ?? 0;
    const places = hosts.get(host);
    if (places === undefined) {
      const begun = { home: least, counts: all.map(() => 0) };
      hosts.set(host, begun);
      return begun;
    }
    const busier = threads.inFlight(places.home) - threads.inFlight(least);
    const isIdle = places.counts.every((each) => each === 0);
    const moves = isIdle && (busier > HOST_SHARE || !threads.isUp(places.home));
    if (moves || places.home >= used.length) places.home = least;
    return places;
  }

  /** The account starts a crawl. */
  function note(accountId: string): void {
    if (lastAccount !== undefined && lastAccount !== accountId) {
      sharedUntil = performance.now() + CRAWLING_MS;
    }
    lastAccount = accountId;
  }

  const isShared = (): boolean => !threads.spreads || performance.now() < sharedUntil;

  return {
    leastLoaded() {
      const least = leastOf(isShared() ? shared : all) ?? 0;
      return chooseUp([least], threads.inFlight);
    },
    enter(task) {
      note(task.accountId);
      const keepsTogether = isShared();
      const used = keepsTogether ? shared : all;
      if (used.length === 1) return { thread: 0, leave: () => undefined };
      const { home, counts } = placesOf(targetHost(task), used);
      const total = counts.reduce((sum, each) => sum + each, 1);
      const width = keepsTogether ? 1 : Math.min(Math.ceil(total / HOST_SHARE), count);
      const own = all.slice(0, width).map((offset) => (home + offset) % count);
      const thread = chooseUp(own, (each) => counts[each] ?? 0);
      const add = (by: number): void => void (counts[thread] = (counts[thread] ?? 0) + by);
      add(1);
      return { thread, leave: () => add(-1) };
    },
    suspect(task) {
      suspects.set(targetHost(task), performance.now() + SUSPECT_MS);
    },
    isSuspect: (task) =>
      suspects.size > 0 && (suspects.get(targetHost(task)) ?? 0) > performance.now(),
  };
}

/** The first of those with the least load; undefined of none. */
function leastBy(threads: readonly number[], load: (thread: number) => number): number | undefined {
  let least: number | undefined;
  for (const thread of threads) {
    if (least === undefined || load(thread) < load(least)) least = thread;
  }
  return least;
}

function targetHost(task: CrawlTask): string {
  return URL.parse(task.request.url)?.host ?? '';
}
