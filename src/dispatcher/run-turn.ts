import type { Crawler } from '../domain/crawler.ts';
import type { Lease } from '../store/store.ts';
import type { CrawlLane, Reservation } from './crawl-lane.ts';
import type { DeliveryLane } from './delivery-lane.ts';
import type { DispatcherDeps } from './dispatcher.ts';
import type { JobLog } from './job-log.ts';
import type { RunStates } from './run-state.ts';

/** What the turns of one run work with. */
export interface RunTurnDeps extends Pick<DispatcherDeps, 'store' | 'clock' | 'shared'> {
  readonly mayCrawl: DispatcherDeps['mayCrawl'] | undefined;
  readonly crawls: CrawlLane;
  readonly deliveries: DeliveryLane;
  readonly states: RunStates;
  readonly jobLog: JobLog | undefined;
}

/** Takes one turn at the database, which claims only if `claims`. Rejects when the store does. */
export type RunTurn = (lease: Lease, crawler: Crawler, claims: boolean) => Promise<void>;

/**
 * A turn that writes pages counts as one more for each of these, so that the bytes before the
 * database are bounded and accounts with large pages get no more of its time than others.
 */
const TURN_BYTES = 128 * 1024;

/** Makes the turns of one run. They are taken one after the other. */
export function createRunTurn(deps: RunTurnDeps): RunTurn {
  const { store, clock, crawls, deliveries, states, jobLog } = deps;

  /**
   * Claims jobs and starts them as soon as the store returns them. Nothing starts in a process that
   * slept through its lease (SIGSTOP, a suspended machine), because others have taken the work over,
   * nor for a crawler that was removed meanwhile.
   */
  async function claimAndStart(lease: Lease, room: Reservation, now: Date): Promise<void> {
    const claim = await store.queue.claim(lease, room.limit, now, room.maxBytes);
    jobLog?.claimed(claim.jobs);
    if (claim.leaseLost) states.end('lease_lost');
    if (states.hasLease()) room.start(claim.jobs);
    await claim.durable;
  }

  async function flushAndClaim(lease: Lease, crawler: Crawler, claims: boolean): Promise<void> {
    const mayCrawl = claims && ((await deps.mayCrawl?.(crawler.accountId)) ?? true);
    const now = clock.now();
    const ended = crawls.takeEnded();
    const posts = deliveries.begin(ended.outcomes, crawler, claims);
    const { outcomes, settlements, claimLimit, claimBytes } = posts;
    const room = mayCrawl ? crawls.reserve(crawler) : undefined;
    try {
      const [finished, , claimed] = await Promise.all([
        outcomes.length > 0 ? store.queue.finish(outcomes, now, lease) : undefined,
        settlements.length > 0 ? store.deliveries.settle(settlements, now) : undefined,
        claimLimit > 0 ? store.deliveries.claim(lease, claimLimit, claimBytes, now) : [],
        room !== undefined && room.limit > 0 ? claimAndStart(lease, room, now) : undefined,
      ]);
      jobLog?.ended(outcomes, finished?.verdicts ?? []);
      jobLog?.deliveriesEnded(settlements);
      jobLog?.deliveriesClaimed(claimed);
      if (!states.hasLease()) return;
      deliveries.start(
        posts,
        { held: finished?.deliveries ?? [], claimed, keep: ended.keep },
        crawler,
      );
    } finally {
      deliveries.releaseUnused(posts);
      room?.cancel();
      ended.release();
    }
  }

  return async (lease, crawler, claims) => {
    const { accountId, crawlerId } = crawler;
    const cost = 1 + Math.floor(crawls.nextWriteBytes / TURN_BYTES);
    const grant = await deps.shared.turns.acquire({ accountId, crawlerId }, cost);
    try {
      await flushAndClaim(lease, crawler, claims);
    } finally {
      grant.release();
    }
  };
}
