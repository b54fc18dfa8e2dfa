import type { Crawler } from '../domain/crawler.ts';
import type { Task } from '../scheduler/scheduler.ts';
import type { Lease } from '../store/store.ts';
import { createCrawlLane } from './crawl-lane.ts';
import { createDeliveryLane } from './delivery-lane.ts';
import type { DeliveryPaces } from './delivery-paces.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import { WorkAborted } from './in-flight.ts';
import { createWakeableSleep } from './wakeable-sleep.ts';

/** What one run needs beside the dispatcher's own. */
export interface CrawlerRunDeps extends DispatcherDeps {
  readonly crawlerId: string;
  readonly task: Task;
  /** The crawler as it was when its run was begun. */
  readonly crawler: Crawler;
  readonly paces: DeliveryPaces;
}

/** The dispatching of one crawler by one process, for as long as it has work. */
export interface CrawlerRun {
  /** Resolves when the crawler was let go, with the moment it has work again. */
  run(): Promise<Date | undefined>;
  /** There is new work; false when the run is letting its crawler go and will not see it. */
  notify(): boolean;
  /** The crawler's configuration has changed. */
  refresh(): void;
  abortJob(rid: string): void;
  /** Ends the run at once; its outcomes are dropped. */
  abort(): void;
  activity(): { readonly crawls: number; readonly deliveries: number };
}

/** A crawler whose endpoint takes nothing for a while is looked at this often. */
const LONGEST_PAUSE_MS = 5_000;

/**
 * Makes a run. It is one loop of turns: a turn writes all that has ended since the last one and claims as much as there are
 * free slots, in one batch; while the batch is written, further work ends and waits for the next turn.
 */
export function createCrawlerRun(deps: CrawlerRunDeps): CrawlerRun {
  const { store, clock, crawlerId, task, timing } = deps;
  const bell = createWakeableSleep();
  let lease: Lease | undefined;
  let leaseUntil = 0;
  let crawler: Crawler | undefined = deps.crawler;
  let aborted = false;
  let told = true;
  let stale = false;
  let ending = false;

  const hasLease = (): boolean => lease !== undefined && clock.now().getTime() < leaseUntil;
  const { memory, crawlSlots: slots } = deps.shared;
  const crawls = createCrawlLane({ ...deps, slots, memory, onChange: bell.ring });
  const lane = createDeliveryLane({ ...deps, memory, hasLease, onChange: bell.ring });

  async function turn(by: Crawler, claims: boolean): Promise<void> {
    const held = lease as Lease;
    const mayCrawl = claims && ((await deps.mayCrawl?.(by.accountId)) ?? true);
    const now = clock.now();
    const ended = crawls.take();
    const posts = lane.begin(ended.outcomes, by, claims);
    const { outcomes, settlements, claimLimit, claimBytes } = posts;
    const room = mayCrawl ? crawls.reserve(by) : undefined;
    try {
      const [finished, , jobs, claimed] = await Promise.all([
        outcomes.length > 0 ? store.queue.finish(outcomes, now, held) : undefined,
        settlements.length > 0 ? store.deliveries.settle(settlements, now) : [],
        room !== undefined && room.limit > 0
          ? store.queue.claim(held, room.limit, now, room.maxBytes)
          : undefined,
        claimLimit > 0 ? store.deliveries.claim(held, claimLimit, claimBytes, now) : [],
      ]);
      lane.start(posts, { held: finished?.deliveries ?? [], claimed, keep: ended.keep }, by);
      room?.start(jobs?.jobs ?? []);
      if (jobs?.leaseLost === true) leaseUntil = 0;
    } finally {
      lane.giveUp(posts);
      room?.cancel();
      ended.release();
    }
  }

  /** One turn, when it is this account's and this crawler's at the database. */
  async function takeTurn(by: Crawler, claims: boolean): Promise<void> {
    const { accountId } = by;
    const grant = await deps.shared.turns.acquire({ accountId, crawlerId }, 1);
    try {
      await turn(by, claims);
    } finally {
      grant.release();
    }
  }

  async function keepLease(now: Date): Promise<void> {
    const [renewed] = await Promise.all([
      store.queue.renew(lease as Lease, timing.leaseMs, now),
      task.touch(),
    ]);
    leaseUntil = renewed ? now.getTime() + timing.leaseMs : 0;
  }

  /** Renews the lease and reads the configuration anew when their time has come. */
  async function renewAndRefresh(times: { renewed: number; read: number }): Promise<void> {
    const now = clock.now();
    const renews = now.getTime() - times.renewed >= timing.leaseMs / 3;
    const reads = stale || now.getTime() - times.read >= timing.refreshMs;
    if (renews) times.renewed = now.getTime();
    if (reads) times.read = now.getTime();
    if (reads) stale = false;
    const [current] = await Promise.all([
      reads ? store.crawlers.get(crawlerId) : crawler,
      renews ? keepLease(now) : undefined,
    ]);
    crawler = current;
  }

  /** Whether deliveries wait that will soon be posted; an endpoint that takes nothing for longer is waited for without the lease. */
  function waitsForRoom(): boolean {
    const pausedMs = (lane.pausedUntil()?.getTime() ?? 0) - clock.now().getTime();
    return lane.isWaiting && pausedMs < timing.idleReleaseMs;
  }

  function isBusy(): boolean {
    return crawls.inFlight > 0 || lane.inFlight > 0 || crawls.unwritten > 0 || lane.unsettled > 0;
  }

  async function dispatch(): Promise<void> {
    let idleSince = clock.now().getTime();
    let polledAt = 0;
    let drainUntil: number | undefined;
    const times = { renewed: idleSince, read: idleSince };
    try {
      while (!aborted && hasLease() && crawler !== undefined) {
        await renewAndRefresh(times);
        if (aborted || !hasLease() || crawler === undefined) return;
        const now = clock.now().getTime();
        if (task.signal.aborted) drainUntil ??= now + timing.drainMs;
        const draining = drainUntil !== undefined;
        if (drainUntil !== undefined && now >= drainUntil) {
          crawls.abortAll(new WorkAborted('released'));
          lane.abortAll(new WorkAborted('released'));
        }
        const polls = told || now - polledAt >= timing.pollMs;
        if (polls) {
          polledAt = now;
          lane.look();
        }
        told = false;
        // What ended has freed its slot, so claiming belongs to the batch that writes it.
        if (polls || crawls.unwritten > 0 || lane.unsettled > 0 || lane.hasRoom) {
          await takeTurn(crawler, !draining);
        }
        if (isBusy() || (!draining && waitsForRoom())) {
          idleSince = clock.now().getTime();
        } else if (
          draining ||
          (!told && clock.now().getTime() - idleSince >= timing.idleReleaseMs)
        ) {
          return;
        }
        await bell.wait(crawls.unwritten > 0 ? 0 : timing.pollMs);
      }
    } finally {
      // In the same step as the last look at `told`: a notify after this is told that nobody listens.
      ending = true;
    }
  }

  async function run(): Promise<Date | undefined> {
    const acquiredAt = clock.now();
    lease = await store.queue.acquire(crawlerId, deps.owner, timing.leaseMs, acquiredAt);
    if (lease === undefined) return undefined;
    leaseUntil = lease.until?.getTime() ?? acquiredAt.getTime() + timing.leaseMs;
    let pausedUntil: Date | undefined;
    try {
      await dispatch();
    } finally {
      pausedUntil = lane.pausedUntil();
      crawls.close();
      lane.abortAll(new WorkAborted('dropped'));
      lane.close();
    }
    if (aborted || !hasLease()) return undefined;
    const now = clock.now();
    const { wakeAt } = await store.queue.release(lease, now);
    if (wakeAt === undefined || pausedUntil === undefined) return wakeAt;
    // No later than this, for the crawls that may be due before its deliveries.
    const latest = now.getTime() + LONGEST_PAUSE_MS;
    return new Date(Math.max(wakeAt.getTime(), Math.min(pausedUntil.getTime(), latest)));
  }

  return {
    run,
    notify() {
      told = true;
      bell.ring();
      return !ending;
    },
    refresh() {
      stale = true;
      told = true;
      bell.ring();
    },
    abortJob(rid) {
      crawls.abort(rid);
    },
    abort() {
      aborted = true;
      bell.ring();
    },
    activity: () => ({ crawls: crawls.inFlight, deliveries: lane.inFlight }),
  };
}
