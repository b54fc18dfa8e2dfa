import type { ClientSession } from 'mongodb';
import { toWall } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { Job } from '../../domain/job.ts';
import { DEFAULT_PRIORITY } from '../../domain/priority.ts';
import { chargedJobBytes } from '../../domain/quotas.ts';
import { createCountChanges } from '../count-changes.ts';
import { PUSH_REQUEST_MS } from '../rules.ts';
import type { PushLimits, PushOutcome, PushReceipt, PushRequest } from '../store.ts';
import { type Amount, takeAccountRoom, wentOver } from './account-room.ts';
import { type EnteredBatches, enterBatches } from './batch-parts.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { readParts, sumCounts } from './counts-document.ts';
import { toJobDocument } from './job-document.ts';
import type { Lanes } from './lanes.ts';
import { isLive, wakeFields } from './lease.ts';
import { type KeyedJobs, readKeys } from './unique-keys.ts';

/** Jobs on their way into the queue of one crawler. */
export interface Admission extends PushRequest {
  readonly limits: PushLimits;
  readonly now: Date;
  /** The `_id` of its memory, if the push may be repeated; `places` are remembered with it. */
  readonly requestKey: string | undefined;
}

/** Many more than other processes push to one crawler while a push is decided. */
const SPARE = 20_000;

/**
 * Creates the function that accepts as many jobs, from the first on, as there is room for. A
 * crawler's limit is exact. Near it, a push writes the parts of all processes that push to the
 * crawler. So no process adds to what has changed since it was read.
 */
export function createAdmission(collections: Collections, lanes: Lanes) {
  const { accounts } = lanes;
  /** Inserts what there is room for; undefined when the crawler is not there. */
  async function insert(admission: Admission, room: number): Promise<Inserted | undefined> {
    const { crawlerId, accountId, jobs, settings, limits, now, requestKey, places } = admission;
    const lane = await lanes.enlist(crawlerId, 'push', now);
    const [crawler, parts] = await Promise.all([
      collections.crawlers.findOne(
        { _id: crawlerId, ...(settings === undefined ? {} : { updatedAt: new Date(settings) }) },
        { projection: { purges: 1, hasPriorities: 1 } },
      ),
      readParts(collections, [crawlerId]).then((found) => found.get(crawlerId) ?? []),
    ]);
    if (crawler === null) return undefined;
    await notePriorities(crawler, jobs);
    const { purges } = crawler;
    const keys = await readKeys(collections, crawler, jobs, now);
    // A URL that was pushed before makes no batch, and a closed batch does not refuse it.
    const unknown = jobs.filter((job) => !keys.isHeld(job));
    const entered = await enterBatches(collections, lane, unknown, now);
    const keyed = keys.divide(jobs.filter((job) => !entered.refused.has(job)));
    const { fresh } = keyed;
    const wanted = Math.min(fresh.length, room);
    const { crawlerQueue } = limits;
    const { touches = 0 } = parts.find(({ _id }) => _id === lane.id) ?? {};
    const { waiting, retrying } = sumCounts(parts, purges);
    const free = crawlerQueue - waiting - retrying;
    const n = Math.max(0, Math.min(wanted, free));
    const inserted = { n, outcomes: toOutcomes(jobs, { ...keyed, ...entered }, n, room) };
    const remembered =
      requestKey === undefined
        ? undefined
        : {
            _id: requestKey,
            crawlerId,
            outcomes: inserted.outcomes,
            ...defined({ places }),
            expiresAt: new Date(toWall(collections.time, now).getTime() + PUSH_REQUEST_MS),
          };
    if (n === 0) {
      const hasDuplicates = inserted.outcomes.some((each) => 'rid' in each);
      if (hasDuplicates && remembered) {
        await lanes.unblocked(crawlerId, () => collections.pushRequests.insertOne(remembered));
      }
      return inserted;
    }
    const documents = fresh.slice(0, n).map((job) => ({
      ...toJobDocument(job, purges, entered.batchIdOf(job)),
      createdAt: toWall(collections.time, job.createdAt),
    }));
    const isNear = wanted > free - SPARE;
    const body = async (session: ClientSession): Promise<void> => {
      if (remembered !== undefined) {
        await collections.pushRequests.insertOne(remembered, { session });
      }
      await keyed.take(n, session);
      await entered.count(fresh.slice(0, n), session);
      await collections.jobs.insertMany(documents, { session });
      if (!isNear) return;
      await collections.counts.updateMany(
        { crawlerId, _id: { $ne: lane.id, $regex: '/push$' } },
        { $inc: { touches: 1 } },
        { session },
      );
    };
    const changes = createCountChanges();
    for (const { size } of documents) changes.move(size, undefined, 'waiting');
    changes.addDay('pushed', n);
    changes.happened('push');
    const condition = { gen: purges, touches, accountId, now };
    await lanes.unblocked(crawlerId, () => lanes.write(lane, condition, body, changes));
    return inserted;
  }

  /** Looks of a crawler go by age alone until a job has another priority than the default. */
  async function notePriorities(
    { _id, hasPriorities = false }: Pick<CrawlerDocument, '_id' | 'hasPriorities'>,
    jobs: readonly Job[],
  ): Promise<void> {
    if (hasPriorities || jobs.every(({ priority }) => priority === DEFAULT_PRIORITY)) return;
    await collections.crawlers.updateOne({ _id }, { $set: { hasPriorities: true } });
  }

  return async (admission: Admission): Promise<PushReceipt> => {
    const { crawlerId, accountId, jobs, limits, now } = admission;
    const room = await takeAccountRoom(
      collections,
      accounts,
      accountId,
      amount(jobs),
      limits.accountQueue,
    );
    let inserted: Inserted | undefined;
    try {
      inserted = await lanes.untilWritten(() => insert(admission, room.n));
    } finally {
      room.giveBack();
    }
    const crawler =
      inserted === undefined ? null : await wake(collections, crawlerId, inserted.n, now);
    if (crawler === null || inserted === undefined) {
      const outcomes = jobs.map(() => ({ refused: 'crawler_not_found' }) as const);
      return { outcomes, crossedAccountLimit: false, leased: false };
    }
    const isOver = room.queued - (room.n - inserted.n) > limits.accountQueue;
    return {
      outcomes: inserted.outcomes,
      crossedAccountLimit: isOver && (await crossed(accountId, limits.accountQueue)),
      leased: isLive(crawler.leaseUntil, now),
    };
  };

  async function crossed(accountId: string, limit: number): Promise<boolean> {
    await accounts.flush();
    return wentOver(collections, accountId, limit);
  }
}

/** Notes that the crawler has work, and returns it; null when it is gone. */
export function wake(collections: Collections, crawlerId: string, n: number, now: Date) {
  const projection = { leaseUntil: 1 } as const;
  if (n === 0) return collections.crawlers.findOne({ _id: crawlerId }, { projection });
  return collections.crawlers.findOneAndUpdate(
    { _id: crawlerId },
    [{ $set: wakeFields(now, 'job') }],
    { projection },
  );
}

/** What was inserted of an admission. */
interface Inserted {
  readonly n: number;
  readonly outcomes: readonly PushOutcome[];
}

function toOutcomes(
  jobs: readonly Job[],
  {
    fresh,
    firsts,
    refused: barred,
  }: Pick<KeyedJobs, 'fresh' | 'firsts'> & Pick<EnteredBatches, 'refused'>,
  inserted: number,
  room: number,
): PushOutcome[] {
  const refused = inserted === room ? 'account_queue_full' : 'crawler_queue_full';
  const accepted = new Set(fresh.slice(0, inserted).map(({ rid }) => rid));
  const left = new Set(fresh.slice(inserted).map(({ rid }) => rid));
  return jobs.map((job): PushOutcome => {
    const { rid } = job;
    if (accepted.has(rid)) return { rid };
    const bar = barred.get(job);
    if (bar !== undefined) return { refused: bar };
    const first = firsts.get(job);
    // Its first is one of this push that was refused.
    return first === undefined || left.has(first) ? { refused } : { rid: first, duplicate: true };
  });
}

function amount(jobs: readonly Job[]): Amount {
  return { n: jobs.length, bytes: jobs.reduce((sum, job) => sum + chargedJobBytes(job), 0) };
}
