import { setTimeout as delay } from 'node:timers/promises';
import type { Job } from '../../domain/job.ts';
import { PUSH_REQUEST_MS } from '../rules.ts';
import type { PushLimits, PushOutcome, PushReceipt, PushRequest } from '../store.ts';
import { stalled } from './admit.ts';
import type { Collections, PushRequestDocument } from './collections.ts';
import { isDuplicate } from './errors.ts';
import { isLive } from './lease.ts';
import type { Ledger } from './ledger.ts';
import type { GroupedPush } from './push.ts';
import { keepRecordsOf } from './removal.ts';
import { resolve } from './reservations.ts';

/**
 * How long a repeated push waits for the call before it, in another process, before it takes over.
 */
/** Twice `MAX_REPEATABLE_STALL_MS` of `admit.ts`, so that the call before inserts nothing any more. */
const MAX_WAIT_MS = 10_000;
const WAIT_STEP_MS = 20;
/**
 * How long a call that comes too late waits for the repetition that has taken over: its jobs are in,
 * or it gives up.
 */
const MAX_REPETITION_MS = 5_000;
/** The `claim` of a request whose call has failed, so that the next one need not wait. */
const RELINQUISHED = 'given up';

type TakenOver = Pick<PushRequestDocument, 'rids' | 'push'>;

/**
 * Creates the push of a request that may be repeated: the call that inserts the request's id
 * performs it, the others return its outcomes.
 */
export function createPushOnce(collections: Collections, ledger: Ledger, push: GroupedPush) {
  return async (
    request: PushRequest,
    requestId: string,
    limits: PushLimits,
    now: Date,
  ): Promise<PushReceipt> => {
    const { crawlerId } = request;
    const _id = `${crawlerId}/${requestId}`;
    await collections.pushRequests.deleteOne({ _id, expiresAt: { $lte: now } });
    if (request.jobs.length === 0 && !(await hasOutcomes(collections, _id))) {
      // Nothing to queue, because the rate is used up: a repetition of this call may have jobs.
      return push({ request, limits, now });
    }
    const claim = ledger.newWriteId();
    let { jobs } = request;
    let rids: readonly string[] = jobs.map((job) => job.rid);
    const expiresAt = new Date(now.getTime() + PUSH_REQUEST_MS);
    const noted = { _id, crawlerId, rids, push: claim, outcomes: null, claim, expiresAt };
    if (jobs.length === 0 || !(await isFirst(collections, noted))) {
      const before = await awaitOutcomes(collections, _id, claim);
      if ('outcomes' in before) {
        const leased = await resolveUncounted(collections, crawlerId, _id, now);
        return { outcomes: before.outcomes, crossedAccountLimit: false, leased };
      }
      rids = before.rids;
      jobs = await findUnpushed(collections, { _id, request, before, now });
      await collections.pushRequests.updateOne({ _id, claim }, { $set: { push: claim } });
    }
    /** The outcomes of all jobs, with those that the call before has pushed. */
    const complete = (made: readonly PushOutcome[]): PushOutcome[] => {
      const own = new Map(jobs.map((job, index) => [job.rid, made[index]]));
      return rids.map((rid) => own.get(rid) ?? { rid });
    };
    const repeatable = {
      id: claim,
      request: _id,
      async keepOutcomes(made: readonly PushOutcome[], twice: readonly string[]) {
        const { matchedCount } = await collections.pushRequests.updateOne(
          { _id, claim },
          {
            $set: { outcomes: complete(made) },
            ...(twice.length === 0 ? {} : { $addToSet: { taken: { $each: [...twice] } } }),
          },
        );
        return matchedCount > 0 ? [] : withdraw(collections, _id, claim);
      },
    };
    const pushed = await push({ request: { ...request, jobs }, limits, now, repeatable }).catch(
      async (error: unknown) => {
        // If this write fails too, the client's retry waits for the time-out.
        await collections.pushRequests
          .updateOne({ _id, claim, outcomes: null }, { $set: { claim: RELINQUISHED } })
          .catch(() => undefined);
        throw error;
      },
    );
    const outcomes = complete(pushed.outcomes);
    // A crawler that is gone keeps nothing: a new one of the same name is another.
    const gone = outcomes.some((each) => 'refused' in each && each.refused === 'crawler_not_found');
    if (gone) await collections.pushRequests.deleteOne({ _id, claim });
    return { ...pushed, outcomes };
  };
}

async function hasOutcomes(collections: Collections, _id: string): Promise<boolean> {
  const document = await collections.pushRequests.findOne({ _id });
  return (document?.outcomes ?? null) !== null;
}

/** Whether this call is the first of its request; then it is noted. */
async function isFirst(collections: Collections, document: PushRequestDocument): Promise<boolean> {
  try {
    await collections.pushRequests.insertOne(document);
    return true;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    // The driver sends an insert again that was not answered.
    const { _id, claim } = document;
    return (await collections.pushRequests.countDocuments({ _id, claim }, { limit: 1 })) > 0;
  }
}

/**
 * Removes the jobs of a push that were inserted after a repetition had taken over, and returns their
 * `rid`s. Those that the repetition has found it counts on; the others it has pushed itself, and they
 * may have been crawled or purged since.
 */
async function withdraw(
  collections: Collections,
  _id: string,
  push: string,
): Promise<readonly string[]> {
  const { taken, rids } = await awaitRepetition(collections, _id);
  const late = {
    _id: { $in: rids.filter((rid) => !taken.includes(rid)) },
    push,
    queued: true,
  } as const;
  const found = await collections.jobs.find(late, { projection: { _id: 1 } }).toArray();
  if (found.length === 0) return [];
  await collections.jobs.deleteMany(late);
  return found.map((each) => each._id);
}

/** Waits until the repetition that has taken over knows its outcomes. */
async function awaitRepetition(
  collections: Collections,
  _id: string,
): Promise<Required<Pick<PushRequestDocument, 'taken' | 'rids'>>> {
  const until = performance.now() + MAX_REPETITION_MS;
  for (;;) {
    const document = await collections.pushRequests.findOne({ _id });
    if (document === null || performance.now() > until) throw stalled();
    const { taken = [], rids, outcomes } = document;
    if (outcomes !== null) return { taken, rids };
    await delay(WAIT_STEP_MS);
  }
}

/** Waits for the outcomes of the call before; takes over the `rid`s of one that does not end. */
async function awaitOutcomes(
  collections: Collections,
  _id: string,
  claim: string,
): Promise<{ readonly outcomes: readonly PushOutcome[] } | TakenOver> {
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

/**
 * Counts the jobs of a request whose call kept its outcomes but may have died before it counted
 * them: uncounted jobs are not crawled. Returns whether the crawler has a live lease.
 */
async function resolveUncounted(
  collections: Collections,
  crawlerId: string,
  _id: string,
  now: Date,
): Promise<boolean> {
  const crawler = await collections.crawlers.findOne(
    { _id: crawlerId },
    { projection: { leaseUntil: 1, pending: 1 } },
  );
  for (const entry of crawler?.pending ?? []) {
    if (entry.request === _id) await resolve(collections, crawlerId, entry, now);
  }
  return isLive(crawler?.leaseUntil, now);
}

/**
 * The jobs of a repeated request, under their first `rid`s, that the call before has not pushed.
 */
async function findUnpushed(
  collections: Collections,
  {
    _id,
    request,
    before: { rids, push },
    now,
  }: {
    readonly _id: string;
    readonly request: PushRequest;
    readonly before: TakenOver;
    readonly now: Date;
  },
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
  const found = there.map((each) => each._id);
  if (found.length > 0) {
    // So that the call before, should it wake up, leaves them alone.
    await collections.pushRequests.updateOne({ _id }, { $addToSet: { taken: { $each: found } } });
  }
  const taken = new Set([...(document?.taken ?? []), ...found]);
  const unpushed = request.jobs.flatMap((job, index) => {
    const rid = rids[index];
    return rid === undefined || taken.has(rid) ? [] : { ...job, rid };
  });
  await keepRecordsOf(
    collections,
    crawlerId,
    unpushed.map((job) => job.rid),
  );
  return unpushed;
}
