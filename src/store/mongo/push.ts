import type { PushLimits, PushOutcome, PushReceipt, PushRequest, QueueStore } from '../store.ts';
import { admit, type RepeatablePush } from './admit.ts';
import type { Collections } from './collections.ts';
import type { Ledger } from './ledger.ts';
import { createPushOnce } from './push-once.ts';

const MAX_GROUP = 1_000;

interface Waiting {
  readonly request: PushRequest;
  readonly limits: PushLimits;
  readonly now: Date;
  /** A push that may be repeated is written alone. */
  readonly repeatable: RepeatablePush | undefined;
  readonly resolve: (receipt: PushReceipt) => void;
  readonly reject: (error: unknown) => void;
}

/** Adds a push to the next write of its crawler. */
export type GroupedPush = (
  push: Pick<Waiting, 'request' | 'limits' | 'now'> & { readonly repeatable?: RepeatablePush },
) => Promise<PushReceipt>;

/**
 * Creates `QueueStore.push`. Pushes to a crawler that arrive while another one is written share the
 * next write.
 */
export function createPush(collections: Collections, ledger: Ledger): QueueStore['push'] {
  const grouped = createGroups((group) => pushGroup(collections, ledger, group));
  const once = createPushOnce(collections, ledger, grouped);
  return (requests, limits, now) =>
    Promise.all(
      requests.map((request) =>
        request.requestId === undefined
          ? grouped({ request, limits, now })
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

  return ({ repeatable, ...push }) => {
    const { promise, resolve, reject } = Promise.withResolvers<PushReceipt>();
    const one = { ...push, repeatable, resolve, reject };
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
    const alone = index > 0 && (each.repeatable ?? queue[0]?.repeatable) !== undefined;
    const differs = each.request.settings !== queue[0]?.request.settings;
    return jobs > MAX_GROUP || alone || differs;
  });
  return queue.splice(0, end === -1 ? queue.length : Math.max(end, 1));
}

async function pushGroup(
  collections: Collections,
  ledger: Ledger,
  group: readonly Waiting[],
): Promise<PushReceipt[]> {
  const { request, limits, repeatable } = group[0] as Waiting;
  const { now } = group.at(-1) as Waiting;
  const { outcomes, crossedAccountLimit, leased } = await admit(collections, ledger, {
    crawlerId: request.crawlerId,
    accountId: request.accountId,
    id: repeatable?.id ?? ledger.newWriteId(),
    jobs: group.flatMap((each) => each.request.jobs),
    settings: request.settings,
    limits,
    now,
    repeatable,
  });
  let index = 0;
  return group.map((each) => ({
    outcomes: each.request.jobs.map(() => outcomes[index++] as PushOutcome),
    crossedAccountLimit: crossedAccountLimit && each === group[0],
    leased,
  }));
}
