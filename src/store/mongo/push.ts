import { toWall } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { PushLimits, PushOutcome, PushReceipt, PushRequest, QueueStore } from '../store.ts';
import { type Admission, createAdmission, wake } from './admit.ts';
import type { Collections } from './collections.ts';
import { createGroupedCalls } from './grouped-calls.ts';
import type { Lanes } from './lanes.ts';
import { isLive } from './lease.ts';
import { isDuplicate } from './mongo-errors.ts';

const MAX_GROUP = 1_000;

/**
 * Creates `QueueStore.push`. Pushes to a crawler that arrive while another one is written share the
 * next write.
 */
export function createPush(collections: Collections, lanes: Lanes): QueueStore['push'] {
  const admit = createAdmission(collections, lanes);
  const { pushRequests } = collections;
  const grouped = createGroupedCalls<Admission, PushReceipt>(async (_crawlerId, group) => {
    const first = group[0] as Admission;
    const { now } = group.at(-1) as Admission;
    const jobs = group.flatMap((each) => each.jobs);
    const { outcomes, crossedAccountLimit, leased } = await admit({ ...first, jobs, now });
    let index = 0;
    return group.map((each) => ({
      outcomes: each.jobs.map(() => outcomes[index++] as PushOutcome),
      crossedAccountLimit: crossedAccountLimit && each === first,
      leased,
    }));
  }, endOfGroup);

  /** The receipt of an earlier call of the request; undefined for the first call. */
  async function earlier(requestKey: string, crawlerId: string, now: Date) {
    const found = await pushRequests.findOne({ _id: requestKey });
    if (found === null) return undefined;
    if (found.expiresAt <= toWall(collections.time, now)) {
      await pushRequests.deleteOne({ _id: requestKey, expiresAt: found.expiresAt });
      return undefined;
    }
    // The process of that call may have died before it woke the crawler.
    const crawler = await wake(collections, crawlerId, found.outcomes.length, now);
    const leased = isLive(crawler?.leaseUntil, now);
    const { outcomes, places } = found;
    return { outcomes, ...defined({ places }), crossedAccountLimit: false, leased };
  }

  /** A push that may be repeated: what it returns is written with its jobs. */
  async function once(request: PushRequest, id: string, limits: PushLimits, now: Date) {
    const requestKey = `${request.crawlerId}/${id}`;
    const before = await earlier(requestKey, request.crawlerId, now);
    if (before !== undefined) return before;
    try {
      const receipt = await grouped(request.crawlerId, { ...request, limits, now, requestKey });
      if (receipt.outcomes.some((outcome) => 'rid' in outcome)) return receipt;
      // Nothing was written, perhaps because another call of the request has filled the queue.
      return (await earlier(requestKey, request.crawlerId, now)) ?? receipt;
    } catch (error) {
      // Another call of the request was faster.
      const after = isDuplicate(error) && (await earlier(requestKey, request.crawlerId, now));
      if (!after) throw error;
      return after;
    }
  }

  return (request, limits, now) =>
    request.requestId === undefined
      ? grouped(request.crawlerId, { ...request, limits, now, requestKey: undefined })
      : once(request, request.requestId, limits, now);
}

/** A push that may be repeated is written alone. */
function endOfGroup(pushes: readonly Admission[]): number {
  const [first] = pushes;
  let count = 0;
  return pushes.findIndex(({ jobs, settings, requestKey }, index) => {
    count += jobs.length;
    const alone = index > 0 && (requestKey ?? first?.requestKey) !== undefined;
    return count > MAX_GROUP || alone || settings !== first?.settings;
  });
}
