import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../domain/errors.ts';
import type { Job } from '../../domain/job.ts';
import { jobBytesOf } from '../../domain/quotas.ts';
import { dayOf } from '../../domain/stats.ts';
import type { PushLimits, PushOutcome, PushReceipt, PushRequest } from '../store.ts';
import type {
  Collections,
  CrawlerDocument,
  PendingPush,
  PushRequestDocument,
} from './collections.ts';
import type { Ledger } from './counts.ts';
import { isDuplicate } from './errors.ts';
import { documentOf } from './job-row.ts';
import { recount, wakeExpression } from './lease.ts';

const REQUEST_MS = 24 * 60 * 60 * 1_000;
/** An episode over the account's limit ends at this share of it, so that a queue that hovers at its limit is told of once. */
const EPISODE_END = 0.9;
const MAX_GROUP = 1_000;
/** A push that has slept this long before its insert may have been given up by `resolvePending`. */
const MAX_STALL_MS = 20_000;
/** How long another process's push of the same request is waited for before it is taken over. */
const MAX_WAIT_MS = 10_000;
const WAIT_STEP_MS = 20;
const GIVEN_UP = 'given up';
/** How many counted requests a crawler remembers, for those whose answer was lost on the way. */
const REMEMBERED = 100;

interface Waiting {
  readonly request: PushRequest;
  readonly limits: PushLimits;
  readonly now: Date;
  /** Names the push of a request that may come again; it is written alone. */
  readonly id: string | undefined;
  readonly resolve: (receipt: PushReceipt) => void;
  readonly reject: (error: unknown) => void;
}

/** Makes `QueueStore.push`. Pushes to a crawler that come while one is written are written together next. */
export function createPush(c: Collections, ledger: Ledger) {
  const waiting = new Map<string, Waiting[]>();
  const newId = (): string => `${ledger.processId}.${ledger.nextSeq()}`;

  function grouped(
    request: PushRequest,
    limits: PushLimits,
    now: Date,
    id?: string,
  ): Promise<PushReceipt> {
    const { promise, resolve, reject } = Promise.withResolvers<PushReceipt>();
    const one = { request, limits, now, id, resolve, reject };
    const others = waiting.get(request.crawlerId);
    if (others !== undefined) others.push(one);
    else {
      waiting.set(request.crawlerId, [one]);
      void drain(request.crawlerId);
    }
    return promise;
  }

  async function drain(crawlerId: string): Promise<void> {
    const queue = waiting.get(crawlerId) ?? [];
    while (queue.length > 0) {
      const group = takeGroup(queue);
      try {
        const receipts = await pushGroup(group);
        group.forEach((each, index) => each.resolve(receipts[index] as PushReceipt));
      } catch (error) {
        for (const each of group) each.reject(error);
      }
    }
    waiting.delete(crawlerId);
  }

  async function pushGroup(group: readonly Waiting[]): Promise<PushReceipt[]> {
    const { request, limits, id } = group[0] as Waiting;
    const { now } = group.at(-1) as Waiting;
    const jobs = group.flatMap((each) => each.request.jobs);
    const admitted = await admit(request, jobs, limits, now, id);
    let index = 0;
    return group.map((each) => {
      const outcomes = each.request.jobs.map(
        (job): PushOutcome =>
          index++ < admitted.accepted ? { rid: job.rid } : { refused: admitted.refused },
      );
      const { accountWentOver, leased } = admitted;
      return { outcomes, accountWentOver: accountWentOver && each === group[0], leased };
    });
  }

  /** Takes as many of the jobs, from the first on, as there is room for: reserves room, inserts, counts. */
  async function admit(
    { crawlerId, accountId }: PushRequest,
    jobs: readonly Job[],
    limits: PushLimits,
    now: Date,
    ownId: string | undefined,
  ) {
    const startedAt = performance.now();
    const rids = jobs.map((job) => job.rid).sort();
    const id = ownId ?? newId();
    const entry = { id, at: now, first: rids[0] ?? '', last: rids.at(-1) ?? '' };
    const bytes = bytesOf(jobs);
    const [account, crawler] = await Promise.all([
      reserveInAccount(c, accountId, jobs.length, bytes, limits.accountQueue),
      reserveInCrawler(c, crawlerId, entry, jobs.length, limits.crawlerQueue),
    ]);
    const granted = account?.granted ?? 0;
    const room = crawler?.granted ?? 0;
    const accepted = Math.min(granted, room);
    const back = granted - accepted;
    const taken = accepted === jobs.length ? bytes : bytesOf(jobs.slice(0, accepted));
    if (back > 0 || taken !== bytes) {
      const queuedBytes = taken - (granted === jobs.length ? bytes : 0);
      await c.accounts.updateOne({ _id: accountId }, { $inc: { queued: -back, queuedBytes } });
    }
    if (crawler === null) {
      return {
        accepted,
        refused: 'crawler_not_found',
        accountWentOver: false,
        leased: false,
      } as const;
    }
    if (accepted > 0) {
      if (performance.now() - startedAt > MAX_STALL_MS) throw stalled();
      const documents = jobs.slice(0, accepted).map((job) => documentOf(job, id));
      await c.jobs.insertMany(documents, { ordered: false });
    }
    const counted = { n: accepted, bytes: taken };
    const confirmed = await confirm(c, crawlerId, id, counted, now, ownId !== undefined);
    if (confirmed === null) {
      const there = await c.crawlers.findOne({ _id: crawlerId }, { projection: { _id: 1 } });
      if (there === null) {
        await c.jobs.deleteMany({ _id: { $in: rids }, push: id });
        return {
          accepted: 0,
          refused: 'crawler_not_found',
          accountWentOver: false,
          leased: false,
        } as const;
      }
      // Another process took this one for dead and has counted what it found.
      await recount(c, crawlerId, true);
    }
    const isOver = (account?.queued ?? 0) - back > limits.accountQueue;
    const refused = accepted === granted ? 'account_queue_full' : 'crawler_queue_full';
    return {
      accepted,
      refused,
      accountWentOver: isOver && (await wentOver(c, accountId, limits.accountQueue)),
      leased: (confirmed?.leaseUntil ?? new Date(0)) > now,
    } as const;
  }

  /** A push that may come again: the first to write its name does it, the others are told the same. */
  async function once(request: PushRequest, limits: PushLimits, now: Date): Promise<PushReceipt> {
    const { crawlerId, requestId } = request;
    const _id = `${crawlerId}/${requestId}`;
    const claim = newId();
    const rids = request.jobs.map((job) => job.rid);
    const expiresAt = new Date(now.getTime() + REQUEST_MS);
    await c.pushRequests.deleteOne({ _id, expiresAt: { $lte: now } });
    let mine = request;
    try {
      await c.pushRequests.insertOne({
        _id,
        crawlerId,
        rids,
        push: claim,
        outcomes: null,
        claim,
        expiresAt,
      });
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      const before = await outcomesOf(_id, claim);
      if ('outcomes' in before) {
        const crawler = await c.crawlers.findOne(
          { _id: crawlerId },
          { projection: { leaseUntil: 1 } },
        );
        const leased = (crawler?.leaseUntil ?? new Date(0)) > now;
        return { outcomes: before.outcomes, accountWentOver: false, leased };
      }
      mine = { ...request, jobs: await unpushed(request, before, now) };
      await c.pushRequests.updateOne({ _id, claim }, { $set: { push: claim } });
    }
    const pushed = await grouped(mine, limits, now, claim).catch(async (error: unknown) => {
      // So that the client's next try need not wait; if this fails too, it waits.
      await c.pushRequests
        .updateOne({ _id, claim }, { $set: { claim: GIVEN_UP } })
        .catch(() => undefined);
      throw error;
    });
    const made = new Map(mine.jobs.map((job, index) => [job.rid, pushed.outcomes[index]]));
    const document = await c.pushRequests.findOne({ _id });
    const outcomes = (document?.rids ?? rids).map((rid): PushOutcome => made.get(rid) ?? { rid });
    // A crawler that is gone keeps nothing: one of the same name is another.
    const gone = outcomes.some((each) => 'refused' in each && each.refused === 'crawler_not_found');
    if (gone) await c.pushRequests.deleteOne({ _id, claim });
    else await c.pushRequests.updateOne({ _id, claim }, { $set: { outcomes } });
    return { ...pushed, outcomes };
  }

  /** Waits for the outcomes of the first push; of one that does not come to its end, takes over the `rid`s. */
  async function outcomesOf(
    _id: string,
    claim: string,
  ): Promise<{ outcomes: readonly PushOutcome[] } | Pick<PushRequestDocument, 'rids' | 'push'>> {
    const until = performance.now() + MAX_WAIT_MS;
    for (;;) {
      const document = await c.pushRequests.findOne({ _id });
      if (document === null) throw stalled();
      if (document.outcomes !== null) return { outcomes: document.outcomes };
      if (document.claim === GIVEN_UP || performance.now() > until) {
        const taken = await c.pushRequests.updateOne(
          { _id, claim: document.claim, outcomes: null },
          { $set: { claim } },
        );
        if (taken.matchedCount > 0) return { rids: document.rids, push: document.push };
      }
      await delay(WAIT_STEP_MS);
    }
  }

  /** The jobs of a repeated request under their first `rid`s, without those that the first push took. */
  async function unpushed(
    request: PushRequest,
    { rids, push }: Pick<PushRequestDocument, 'rids' | 'push'>,
    now: Date,
  ): Promise<Job[]> {
    const { crawlerId } = request;
    const inserted = await c.jobs
      .find({ _id: { $in: [...rids] }, push }, { projection: { size: 1 } })
      .toArray();
    const found = {
      n: inserted.length,
      bytes: inserted.reduce((sum, { size = 0 }) => sum + size, 0),
    };
    // Not counted yet, so nobody has touched what it inserted.
    const confirmed = await confirm(c, crawlerId, push, found, now, true);
    const crawler = await c.crawlers.findOne({ _id: crawlerId }, { projection: { counted: 1 } });
    const counted = crawler?.counted.find((each) => each.id === push)?.n ?? 0;
    const taken = confirmed === null ? rids.slice(0, counted) : inserted.map((each) => each._id);
    return request.jobs.flatMap((job, index) => {
      const rid = rids[index];
      return rid === undefined || taken.includes(rid) ? [] : { ...job, rid };
    });
  }

  return (
    requests: readonly PushRequest[],
    limits: PushLimits,
    now: Date,
  ): Promise<PushReceipt[]> =>
    Promise.all(
      requests.map((request) =>
        request.requestId === undefined
          ? grouped(request, limits, now)
          : once(request, limits, now),
      ),
    );
}

function takeGroup(queue: Waiting[]): Waiting[] {
  let jobs = 0;
  const end = queue.findIndex((each, index) => {
    jobs += each.request.jobs.length;
    return jobs > MAX_GROUP || (index > 0 && (each.id ?? queue[0]?.id) !== undefined);
  });
  return queue.splice(0, end === -1 ? queue.length : Math.max(end, 1));
}

function stalled(): DomainError {
  return new DomainError(
    'unavailable',
    'database_unavailable',
    'The push took too long and was given up; try again.',
    { retryAfterMs: 1_000 },
  );
}

function bytesOf(jobs: readonly Job[]): number {
  return jobs.reduce((sum, job) => sum + jobBytesOf(job), 0);
}

/** Reserves room for jobs, and counts their bytes if there is room for all of them. */
async function reserveInAccount(
  c: Collections,
  accountId: string,
  n: number,
  bytes: number,
  limit: number,
) {
  const whole = { $cond: [{ $eq: ['$granted', n] }, bytes, 0] };
  const room = { $max: [0, { $min: [n, { $subtract: [limit + 1, '$queued'] }] }] };
  const goesOn = { $and: ['$over', { $gt: ['$queued', limit * EPISODE_END] }] };
  return c.accounts.findOneAndUpdate(
    { _id: accountId },
    [
      { $set: { granted: room, over: goesOn } },
      {
        $set: {
          queued: { $add: ['$queued', '$granted'] },
          queuedBytes: { $add: [{ $ifNull: ['$queuedBytes', 0] }, whole] },
        },
      },
    ],
    { returnDocument: 'after', projection: { queued: 1, granted: 1 } },
  );
}

async function reserveInCrawler(
  c: Collections,
  crawlerId: string,
  entry: Omit<PendingPush, 'n'>,
  n: number,
  limit: number,
) {
  const held = { $add: [{ $subtract: ['$live', '$running'] }, { $sum: '$pending.n' }] };
  const room = { $max: [0, { $min: [n, { $subtract: [limit, held] }] }] };
  return c.crawlers.findOneAndUpdate(
    { _id: crawlerId },
    [
      { $set: { granted: room } },
      { $set: { pending: { $concatArrays: ['$pending', [{ ...entry, n: '$granted' }]] } } },
    ],
    { returnDocument: 'after', projection: { granted: 1 } },
  );
}

/** Counts a pending push, and wakes its crawler; null when it is not pending. */
async function confirm(
  c: Collections,
  crawlerId: string,
  id: string,
  { n, bytes }: { readonly n: number; readonly bytes: number },
  now: Date,
  remembered = false,
) {
  const day = dayOf(now);
  const counted = {
    live: { $add: ['$live', n] },
    liveBytes: { $add: [{ $ifNull: ['$liveBytes', 0] }, bytes] },
    'last.push': { $max: ['$last.push', now] },
    [`days.${day}.pushed`]: { $add: [{ $ifNull: [`$days.${day}.pushed`, 0] }, n] },
    firstDay: { $min: ['$firstDay', day] },
    wakes: { $add: ['$wakes', 1] },
    wakeAt: wakeExpression(now, 'job'),
  };
  const lately = {
    $slice: [{ $concatArrays: ['$counted', [{ id, n }]] }, -REMEMBERED],
  };
  const pending = { $filter: { input: '$pending', cond: { $ne: ['$$this.id', id] } } };
  return c.crawlers.findOneAndUpdate(
    { _id: crawlerId, 'pending.id': id },
    [{ $set: { pending, ...(n > 0 ? counted : {}), ...(remembered ? { counted: lately } : {}) } }],
    { returnDocument: 'after', projection: { leaseUntil: 1 } },
  );
}

async function wentOver(c: Collections, accountId: string, limit: number): Promise<boolean> {
  const { modifiedCount } = await c.accounts.updateOne(
    { _id: accountId, over: false, queued: { $gt: limit } },
    { $set: { over: true } },
  );
  return modifiedCount > 0;
}

/** Counts what is there of pushes whose process has not come back since `before`; how many. */
export async function resolvePending(c: Collections, before: Date, now: Date): Promise<number> {
  const crawlers: Pick<CrawlerDocument, '_id' | 'pending' | 'accountId'>[] = await c.crawlers
    .find({ 'pending.at': { $lte: before } }, { projection: { pending: 1, accountId: 1 } })
    .toArray();
  let resolved = 0;
  for (const crawler of crawlers) {
    for (const { id, at, first, last } of crawler.pending) {
      if (at > before) continue;
      const range = { $gte: first, $lte: last };
      const [found = { n: 0, bytes: 0 }] = await c.jobs
        .aggregate<{ n: number; bytes: number }>([
          { $match: { _id: range, push: id, state: { $ne: 'ended' } } },
          { $group: { _id: null, n: { $sum: 1 }, bytes: { $sum: '$size' } } },
        ])
        .toArray();
      if ((await confirm(c, crawler._id, id, found, now)) !== null) resolved += 1;
    }
  }
  return resolved;
}
