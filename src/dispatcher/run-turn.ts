import type { Crawler } from '../domain/crawler.ts';
import type { Lease } from '../store/store.ts';
import type { CrawlLane } from './crawl-lane.ts';
import type { DeliveryLane } from './delivery-lane.ts';
import type { DispatcherDeps } from './dispatcher-deps.ts';
import type { JobLog } from './job-log.ts';
import type { RunStates } from './run-state.ts';

/** What the turns of one run work with. */
export interface RunTurnDeps extends Pick<DispatcherDeps, 'store' | 'clock' | 'shared'> {
  readonly mayCrawl: (accountId: string) => Promise<boolean>;
  readonly crawls: CrawlLane;
  readonly deliveries: DeliveryLane;
  readonly states: RunStates;
  readonly jobLog: JobLog | undefined;
}

/** Takes one turn at the database, which claims only if `claims`. Rejects when the store does. */
export type RunTurn = (lease: Lease, crawler: Crawler, claims: boolean) => Promise<void>;

/**
 * A turn that writes pages counts as one more for each of these bytes. So the bytes before the
 * database are bounded, and accounts with large pages get no more of its time than others.
 */
const TURN_BYTES = 128 * 1024;

/** Makes the turns of one run. They are taken one after the other. */
export function createRunTurn(deps: RunTurnDeps): RunTurn {
  const { store, clock, crawls, deliveries, states, jobLog } = deps;

  async function writeAndLook(lease: Lease, crawler: Crawler, claims: boolean): Promise<void> {
    const mayCrawl = claims && (await deps.mayCrawl(crawler.accountId));
    const now = clock.now();
    const work = crawls.begin(crawler, mayCrawl);
    const posts = deliveries.begin(work.ended, crawler, claims);
    const { outcomes, settlements, claimLimit: limit, claimBytes: maxBytes } = posts;
    try {
      const receipt = await store.queue.turn(
        lease,
        {
          ended: outcomes,
          started: work.started,
          settled: settlements,
          deliveries: limit > 0 ? { limit, maxBytes } : undefined,
          look: work.look,
        },
        now,
      );
      jobLog?.ended(outcomes, receipt.verdicts);
      jobLog?.deliveriesEnded(settlements);
      jobLog?.deliveriesClaimed(receipt.claimed);
      if (receipt.leaseLost) states.end('lease_lost');
      work.end(receipt);
      if (states.hasLease()) deliveries.start(posts, { ...receipt, keep: work.keep });
    } catch (error) {
      work.fail();
      deliveries.fail(posts);
      throw error;
    } finally {
      deliveries.release(posts);
      work.release();
    }
  }

  return async (lease, crawler, claims) => {
    const { accountId, crawlerId } = crawler;
    const cost = 1 + Math.floor(crawls.nextWriteBytes / TURN_BYTES);
    const grant = await deps.shared.turns.acquire({ accountId, crawlerId }, cost);
    try {
      await writeAndLook(lease, crawler, claims);
    } finally {
      grant.release();
    }
  };
}
