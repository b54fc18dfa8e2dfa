import { toWall } from '../../domain/clock.ts';
import { heldDeliveries } from '../held-deliveries.ts';
import type { Lease, QueueStore, TurnReceipt, TurnWork } from '../store.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { dueDeliveries, readClaimed } from './deliveries.ts';
import { NOTHING, type WriteWork } from './finish.ts';
import type { HostMarks } from './host-marks.ts';
import type { Lanes } from './lanes.ts';
import { nextDelivery } from './lease.ts';
import { isHeld } from './leases.ts';
import { look } from './look.ts';

/** The fields that a run needs to know of its crawler. */
const STATE_FIELDS = {
  accountId: 1,
  pausedByUser: 1,
  pausedByMonitor: 1,
  purges: 1,
  hasPriorities: 1,
  epoch: 1,
  leaseOwner: 1,
  leaseUntil: 1,
  shares: 1,
} as const;

type CrawlerState = Pick<CrawlerDocument, '_id' | keyof typeof STATE_FIELDS>;

/** Creates `QueueStore.turn`. */
export function createTurn(
  collections: Collections,
  lanes: Lanes,
  marks: HostMarks,
  writeWork: WriteWork,
): QueueStore['turn'] {
  async function takeTurn(lease: Lease, work: TurnWork, now: Date): Promise<TurnReceipt> {
    const { ended = [], started = [], settled = [] } = work;
    const { crawlerId } = lease;
    const writes = ended.length + started.length + settled.length > 0;
    // Before the crawler is read: see `Lanes.enlist`.
    if (writes || work.deliveries !== undefined) {
      await lanes.enlist(crawlerId, 'turn', now, lease.epoch);
    }
    // What is claimed was due before the deliveries of this turn are.
    const [state, waiting] = await Promise.all([
      collections.crawlers.findOne<CrawlerState>({ _id: crawlerId }, { projection: STATE_FIELDS }),
      work.deliveries && dueDeliveries(collections, crawlerId, work.deliveries, now),
    ]);
    const isOurs = state !== null && isHeld(state, lease, now);
    const paused = state !== null && (state.pausedByUser || state.pausedByMonitor);
    const due = isOurs && !state.pausedByMonitor ? waiting : undefined;
    const starts = isOurs && !paused ? started : [];
    const written =
      state === null
        ? NOTHING
        : await writeWork(
            state,
            { ended, started: starts, settled, claimed: due ?? [] },
            now,
            isOurs ? lease.epoch : undefined,
          );
    const verdicts = ended.map((each) => (written.ended.has(each) ? 'won' : 'lost'));
    const [{ claimed, nextDeliveryAt }, found] = await Promise.all([
      readDeliveries(lease, due),
      work.look !== undefined && isOurs && !paused
        ? look(collections, marks, state, work.look, now)
        : { jobs: [], hasMore: false, nextDueAt: undefined },
    ]);
    return {
      verdicts,
      settled: settled.map((each) => (written.settled.has(each) ? 'won' : 'lost')),
      held: isOurs ? heldDeliveries(ended, verdicts, toWall(collections.time, now)) : [],
      claimed,
      nextDeliveryAt,
      lost: started.filter((each) => !written.started.has(each)).map(({ rid }) => rid),
      ...found,
      leaseLost: !isOurs,
      paused,
    };
  }

  /** The deliveries that were claimed; without any, when the next one is due. */
  async function readDeliveries(
    { crawlerId, epoch }: Lease,
    due: readonly string[] | undefined,
  ): Promise<Pick<TurnReceipt, 'claimed' | 'nextDeliveryAt'>> {
    if (due === undefined) return { claimed: [], nextDeliveryAt: undefined };
    const claimed = due.length === 0 ? [] : await readClaimed(collections, due, epoch);
    const isNone = claimed.length === 0;
    return {
      claimed,
      nextDeliveryAt: isNone ? await nextDelivery(collections, crawlerId) : undefined,
    };
  }

  return (lease, work, now) =>
    lanes.runExclusive(lease.crawlerId, () => lanes.untilWritten(() => takeTurn(lease, work, now)));
}
