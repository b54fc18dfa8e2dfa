import { toWall } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { PushLimits, PushOutcome, PushReceipt, PushRequest, QueueStore } from '../store.ts';
import { createAdmission, wake } from './admit.ts';
import type { Collections } from './collections.ts';
import type { Lanes } from './lanes.ts';
import { isLive } from './lease.ts';
import { isDuplicate } from './mongo-errors.ts';

const MAX_GROUP = 1_000;

interface Waiting {
  readonly request: PushRequest;
  readonly limits: PushLimits;
  readonly now: Date;
  /** The `_id` of its memory. A push that may be repeated is written alone. */
  readonly requestKey: string | undefined;
  readonly resolve: (receipt: PushReceipt) => void;
  readonly reject: (error: unknown) => void;
}

/** Adds a push to the next write of its crawler. */
type GroupedPush = (
  push: Pick<Waiting, 'request' | 'limits' | 'now' | 'requestKey'>,
) => Promise<PushReceipt>;

/**
 * Creates `QueueStore.push`. Pushes to a crawler that arrive while another one is written share the
 * next write.
 */
export function createPush(collections: Collections, lanes: Lanes): QueueStore['push'] {
  const admit = createAdmission(collections, lanes);
  const { pushRequests } = collections;
  const grouped = createGroups(async (group) => {
    const { request, limits, requestKey } = group[0] as Waiting;
    const { crawlerId, accountId, settings, places } = request;
    const { now } = group.at(-1) as Waiting;
    const jobs = group.flatMap((each) => each.request.jobs);
    const named = { requestKey, places };
    const admission = { crawlerId, accountId, jobs, settings, limits, now, ...named };
    const { outcomes, crossedAccountLimit, leased } = await admit(admission);
    let index = 0;
    return group.map((each) => ({
      outcomes: each.request.jobs.map(() => outcomes[index++] as PushOutcome),
      crossedAccountLimit: crossedAccountLimit && each === group[0],
      leased,
    }));
  });

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
      const receipt = await grouped({ request, limits, now, requestKey });
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

  return (requests, limits, now) =>
    Promise.all(
      requests.map((request) =>
        request.requestId === undefined
          ? grouped({ request, limits, now, requestKey: undefined })
          : once(request, request.requestId, limits, now),
      ),
    );
}

/** Collects the pushes to each crawler while `write` writes the ones before. */
function createGroups(write: (group: readonly Waiting[]) => Promise<PushReceipt[]>): GroupedPush {
  const waiting = new Map<string, Waiting[]>();

  async function drain(crawlerId: string): Promise<void> {
    const queue = waiting.get(crawlerId) ?? [];
    while (queue.length > 0) {
      const group = takeGroup(queue);
      try {
        const receipts = await write(group);
        group.forEach((each, index) => each.resolve(receipts[index] as PushReceipt));
      } catch (error) {
        for (const each of group) each.reject(error);
      }
    }
    waiting.delete(crawlerId);
  }

  return (push) => {
    const { promise, resolve, reject } = Promise.withResolvers<PushReceipt>();
    const one = { ...push, resolve, reject };
    const { crawlerId } = push.request;
    const others = waiting.get(crawlerId);
    if (others !== undefined) others.push(one);
    else {
      waiting.set(crawlerId, [one]);
      void drain(crawlerId);
    }
    return promise;
  };
}

function takeGroup(queue: Waiting[]): Waiting[] {
  let jobs = 0;
  const end = queue.findIndex((each, index) => {
    jobs += each.request.jobs.length;
    const alone = index > 0 && (each.requestKey ?? queue[0]?.requestKey) !== undefined;
    const differs = each.request.settings !== queue[0]?.request.settings;
    return jobs > MAX_GROUP || alone || differs;
  });
  return queue.splice(0, end === -1 ? queue.length : Math.max(end, 1));
}
