import { setTimeout as delay } from 'node:timers/promises';
import { type DomainError, databaseUnavailable } from '../../domain/errors.ts';
import type { Job } from '../../domain/job.ts';
import { jobBytesOf } from '../../domain/quotas.ts';
import { PUSH_REQUEST_MS } from '../rules.ts';
import type { PushLimits, PushOutcome, PushReceipt, PushRequest } from '../store.ts';
import type { Collections, PushRequestDocument } from './collections.ts';
import { duplicateIndexes, isDuplicate } from './errors.ts';
import { toJobDocument } from './job-document.ts';
import { isLive } from './lease.ts';
import type { Ledger } from './ledger.ts';
import { recount } from './recount.ts';
import { confirm, reserveInAccount, reserveInCrawler, resolve, wentOver } from './reservations.ts';

const MAX_GROUP = 1_000;
/** A push that has slept this long before its insert may have been given up by `resolvePending`. */
const MAX_STALL_MS = 20_000;
/** How long another process's push of the same request is waited for before it is taken over. */
const MAX_WAIT_MS = 10_000;
const WAIT_STEP_MS = 20;
const RELINQUISHED = 'given up';

/** A push that others may ask about: its name, its request, and what becomes durable before it is counted. */
interface Named {
  readonly id: string;
  readonly request: string;
  readonly keep: (outcomes: readonly PushOutcome[]) => Promise<unknown>;
}

interface Waiting {
  readonly request: PushRequest;
  readonly limits: PushLimits;
  readonly now: Date;
  /** The push of a request that may come again; it is written alone. */
  readonly named: Named | undefined;
  readonly resolve: (receipt: PushReceipt) => void;
  readonly reject: (error: unknown) => void;
}

/** Makes `QueueStore.push`. Pushes to a crawler that come while one is written are written together next. */
export function createPush(collections: Collections, ledger: Ledger) {
  const waiting = new Map<string, Waiting[]>();

  function grouped(
    request: PushRequest,
    limits: PushLimits,
    now: Date,
    named?: Named,
  ): Promise<PushReceipt> {
    const { promise, resolve, reject } = Promise.withResolvers<PushReceipt>();
    const one = { request, limits, now, named, resolve, reject };
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
    const { request, limits, named } = group[0] as Waiting;
    const { now } = group.at(-1) as Waiting;
    const jobs = group.flatMap((each) => each.request.jobs);
    const { outcomes, crossedAccountLimit, leased } = await admit(
      request,
      jobs,
      limits,
      now,
      named,
    );
    let index = 0;
    return group.map((each) => ({
      outcomes: each.request.jobs.map(() => outcomes[index++] as PushOutcome),
      crossedAccountLimit: crossedAccountLimit && each === group[0],
      leased,
    }));
  }

  /** Takes as many of the jobs, from the first on, as there is room for: reserves room, inserts, counts. */
  async function admit(
    { crawlerId, accountId }: PushRequest,
    jobs: readonly Job[],
    limits: PushLimits,
    now: Date,
    named: Named | undefined,
  ): Promise<PushReceipt> {
    const startedAt = performance.now();
    const rids = jobs.map((job) => job.rid).sort();
    const id = named?.id ?? ledger.newWriteId();
    const entry = {
      id,
      at: now,
      first: rids[0] ?? '',
      last: rids.at(-1) ?? '',
      ...(named === undefined ? {} : { request: named.request }),
    };
    const bytes = totalBytes(jobs);
    const giveBack = async (n: number, size: number): Promise<void> => {
      if (n === 0 && size === 0) return;
      await collections.accounts.updateOne(
        { _id: accountId },
        { $inc: { queued: -n, queuedBytes: -size } },
      );
    };
    const [reserved, room] = await Promise.allSettled([
      reserveInAccount(collections, accountId, jobs.length, bytes, limits.accountQueue),
      reserveInCrawler(collections, crawlerId, entry, jobs.length, limits.crawlerQueue),
    ]);
    if (reserved.status === 'rejected') throw reserved.reason;
    const account = reserved.value;
    const granted = account?.granted ?? 0;
    // Its bytes are counted when there was room for all of them.
    const grantedBytes = granted === jobs.length ? bytes : 0;
    if (room.status === 'rejected') {
      await giveBack(granted, grantedBytes).catch(() => undefined);
      throw room.reason;
    }
    const crawler = room.value;
    const accepted = Math.min(granted, crawler?.granted ?? 0);
    const taken = accepted === jobs.length ? bytes : totalBytes(jobs.slice(0, accepted));
    await giveBack(granted - accepted, grantedBytes - taken);
    if (crawler === null) return noCrawler(jobs);
    const refused = accepted === granted ? 'account_queue_full' : 'crawler_queue_full';
    const outcomes = jobs.map(
      (job, index): PushOutcome => (index < accepted ? { rid: job.rid } : { refused }),
    );
    const gen = crawler.purges;
    const counted = { n: accepted, bytes: taken };
    const twice = { n: 0, bytes: 0 };
    if (accepted > 0) {
      if (performance.now() - startedAt > MAX_STALL_MS) throw stalled();
      const documents = jobs.slice(0, accepted).map((job) => toJobDocument(job, id, gen));
      try {
        await collections.jobs.insertMany(documents, { ordered: false });
      } catch (error) {
        // Of a request that came again, the first call's insert was late: these are queued under its name.
        if (named === undefined) throw error;
        for (const index of duplicateIndexes(error)) {
          twice.n += 1;
          twice.bytes += documents[index]?.size ?? 0;
        }
      }
    }
    await named?.keep(outcomes);
    counted.n -= twice.n;
    counted.bytes -= twice.bytes;
    const confirmed = await confirm(collections, crawlerId, { id, gen }, counted, now);
    await giveBack(twice.n, twice.bytes);
    if (confirmed === null) {
      const there = await collections.crawlers.findOne(
        { _id: crawlerId },
        { projection: { _id: 1 } },
      );
      if (there === null) {
        await Promise.all([
          collections.jobs.deleteMany({ _id: { $in: rids }, push: id }),
          giveBack(counted.n, counted.bytes),
        ]);
        return noCrawler(jobs);
      }
    }
    // Another process took this one for dead and has counted what it found; or this one met what nobody has counted.
    if (confirmed === null || twice.n > 0) await recount(collections, crawlerId, true);
    const isOver = (account?.queued ?? 0) - (granted - accepted) > limits.accountQueue;
    return {
      outcomes,
      crossedAccountLimit: isOver && (await wentOver(collections, accountId, limits.accountQueue)),
      leased: isLive(confirmed?.leaseUntil, now),
    };
  }

  /** A push that may come again: the first to write its name does it, the others are told the same. */
  async function once(request: PushRequest, limits: PushLimits, now: Date): Promise<PushReceipt> {
    const { crawlerId, requestId } = request;
    const _id = `${crawlerId}/${requestId}`;
    const claim = ledger.newWriteId();
    let { jobs } = request;
    let rids: readonly string[] = jobs.map((job) => job.rid);
    const expiresAt = new Date(now.getTime() + PUSH_REQUEST_MS);
    await collections.pushRequests.deleteOne({ _id, expiresAt: { $lte: now } });
    // A call with nothing to queue, because its rate is used up, is not the one that counts.
    const empty = jobs.length > 0 ? null : await collections.pushRequests.findOne({ _id });
    if (jobs.length === 0 && (empty?.outcomes ?? null) === null)
      return grouped(request, limits, now);
    const note = { _id, crawlerId, rids, push: claim, outcomes: null, claim, expiresAt };
    const first = jobs.length > 0 && (await isFirst(note));
    if (!first) {
      const before = await awaitOutcomes(_id, claim);
      if ('outcomes' in before) {
        const crawler = await collections.crawlers.findOne(
          { _id: crawlerId },
          { projection: { leaseUntil: 1, pending: 1 } },
        );
        // The call that kept these may have died before it counted them, and nobody crawls what is not counted.
        for (const entry of crawler?.pending ?? []) {
          if (entry.request === _id) await resolve(collections, crawlerId, entry, now);
        }
        const leased = isLive(crawler?.leaseUntil, now);
        return { outcomes: before.outcomes, crossedAccountLimit: false, leased };
      }
      rids = before.rids;
      jobs = await unpushed(_id, request, before, now);
      await collections.pushRequests.updateOne({ _id, claim }, { $set: { push: claim } });
    }
    const known = rids;
    const withEarlier = (made: readonly PushOutcome[]): PushOutcome[] => {
      const own = new Map(jobs.map((job, index) => [job.rid, made[index]]));
      return known.map((rid) => own.get(rid) ?? { rid });
    };
    const named = {
      id: claim,
      request: _id,
      keep: (made: readonly PushOutcome[]) =>
        collections.pushRequests.updateOne(
          { _id, claim },
          { $set: { outcomes: withEarlier(made) } },
        ),
    };
    const pushed = await grouped({ ...request, jobs }, limits, now, named).catch(
      async (error: unknown) => {
        // So that the client's next try need not wait; if this fails too, it waits.
        await collections.pushRequests
          .updateOne({ _id, claim, outcomes: null }, { $set: { claim: RELINQUISHED } })
          .catch(() => undefined);
        throw error;
      },
    );
    const outcomes = withEarlier(pushed.outcomes);
    // A crawler that is gone keeps nothing: one of the same name is another.
    const gone = outcomes.some((each) => 'refused' in each && each.refused === 'crawler_not_found');
    if (gone) await collections.pushRequests.deleteOne({ _id, claim });
    return { ...pushed, outcomes };
  }

  /** Whether this call is the first of its request; then it is noted. */
  async function isFirst(document: PushRequestDocument): Promise<boolean> {
    try {
      await collections.pushRequests.insertOne(document);
      return true;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      return false;
    }
  }

  /** Waits for the outcomes of the first push; of one that does not come to its end, takes over the `rid`s. */
  async function awaitOutcomes(
    _id: string,
    claim: string,
  ): Promise<{ outcomes: readonly PushOutcome[] } | Pick<PushRequestDocument, 'rids' | 'push'>> {
    const until = performance.now() + MAX_WAIT_MS;
    for (;;) {
      const document = await collections.pushRequests.findOne({ _id });
      if (document === null) throw stalled();
      if (document.outcomes !== null) return { outcomes: document.outcomes };
      if (document.claim === RELINQUISHED || performance.now() > until) {
        const taken = await collections.pushRequests.updateOne(
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
    _id: string,
    request: PushRequest,
    { rids, push }: Pick<PushRequestDocument, 'rids' | 'push'>,
    now: Date,
  ): Promise<Job[]> {
    const { crawlerId } = request;
    const crawler = await collections.crawlers.findOne(
      { _id: crawlerId },
      { projection: { pending: 1 } },
    );
    const entry = crawler?.pending.find((each) => each.id === push);
    if (entry !== undefined) await resolve(collections, crawlerId, { ...entry, request: _id }, now);
    const document = await collections.pushRequests.findOne({ _id }, { projection: { taken: 1 } });
    const there = await collections.jobs
      .find({ _id: { $in: [...rids] } }, { projection: { _id: 1 } })
      .toArray();
    const taken = new Set([...(document?.taken ?? []), ...there.map((each) => each._id)]);
    return request.jobs.flatMap((job, index) => {
      const rid = rids[index];
      return rid === undefined || taken.has(rid) ? [] : { ...job, rid };
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
    return jobs > MAX_GROUP || (index > 0 && (each.named ?? queue[0]?.named) !== undefined);
  });
  return queue.splice(0, end === -1 ? queue.length : Math.max(end, 1));
}

function stalled(): DomainError {
  return databaseUnavailable('The push took too long and was given up; try again.');
}

function totalBytes(jobs: readonly Job[]): number {
  return jobs.reduce((sum, job) => sum + jobBytesOf(job), 0);
}

function noCrawler(jobs: readonly Job[]): PushReceipt {
  const outcomes = jobs.map(() => ({ refused: 'crawler_not_found' }) as const);
  return { outcomes, crossedAccountLimit: false, leased: false };
}
