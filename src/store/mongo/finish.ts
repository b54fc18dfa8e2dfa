import type { ClientSession, Collection, UpdateOneModel } from 'mongodb';
import { toWall } from '../../domain/clock.ts';
import { isShare } from '../share-store.ts';
import type { DeliveryOutcome, JobOutcome, QueueStore } from '../store.ts';
import { countBatchEnds } from './batch-parts.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { settleUpdate } from './deliveries.ts';
import { JOB_FACTS, type JobFacts, type JobWork, type JobWrites, jobWrites } from './endings.ts';
import type { Lanes } from './lanes.ts';
import { wakeNow } from './lease.ts';
import { readPurges } from './queue-reads.ts';
import { freeKeys } from './unique-keys.ts';

/** What one transaction writes of a crawler. */
export interface Work extends JobWork {
  readonly settled: readonly DeliveryOutcome[];
  /** Due deliveries that the lease claims. */
  readonly claimed: readonly string[];
}

/** What of it was written. */
export interface Written extends Pick<JobWrites, 'ended' | 'started'> {
  readonly settled: ReadonlySet<DeliveryOutcome>;
}

/** What is written of a crawler that is gone. */
export const NOTHING: Written = { ended: new Set(), started: new Set(), settled: new Set() };

type Crawler = Pick<CrawlerDocument, '_id' | 'accountId' | 'purges'>;

/**
 * Writes as much of the work as is in the state that it names, in one transaction, under the lease
 * `epoch` if it is given. Throws `Fenced` when the crawler or the lease has changed.
 */
export type WriteWork = (
  crawler: Crawler,
  work: Work,
  now: Date,
  epoch?: number,
) => Promise<Written>;

/** Creates what writes the work of turns, and what is finished outside of one. */
export function createWriteWork(collections: Collections, lanes: Lanes): WriteWork {
  const { jobs, deliveries, results } = collections;

  async function readFacts(
    crawlerId: string,
    rids: readonly string[],
    session: ClientSession,
  ): Promise<ReadonlyMap<string, JobFacts>> {
    if (rids.length === 0) return new Map();
    const found: JobFacts[] = await jobs
      .find({ _id: { $in: [...rids] }, crawlerId }, { ...inOneReply(rids, JOB_FACTS), session })
      .toArray();
    return new Map(found.map((each) => [each._id, each]));
  }

  /** The outcomes of deliveries that still are in the attempt named. */
  async function stillSent(
    outcomes: readonly DeliveryOutcome[],
    session: ClientSession,
  ): Promise<Set<DeliveryOutcome>> {
    if (outcomes.length === 0) return new Set();
    const rids = outcomes.map(({ rid }) => rid);
    const fields = { attempt: 1, crawlerId: 1 } as const;
    const found = await deliveries
      .find({ _id: { $in: rids }, state: 'sending' }, { ...inOneReply(rids, fields), session })
      .toArray();
    const sent = new Map(found.map((each) => [each._id, each]));
    const still = outcomes.filter(({ rid, attempt, crawlerId }) => {
      const delivery = sent.get(rid);
      sent.delete(rid);
      return delivery?.attempt === attempt && delivery.crawlerId === crawlerId;
    });
    return new Set(still);
  }

  return async (crawler, work, now, epoch) => {
    const { ended, started, settled, claimed } = work;
    if ([ended, started, settled, claimed].every(({ length }) => length === 0)) return NOTHING;
    const { _id: crawlerId, accountId, purges } = crawler;
    const keptAt = toWall(collections.time, now);
    const writing = { crawlerId, accountId, purges, now, keptAt, epoch };
    const rids = [...ended, ...started].map(({ rid }) => rid);
    const lane = await lanes.enlist(crawlerId, 'turn', now, epoch);
    // What another write has changed since the snapshot is a conflict.
    const { writes, sent } = await lanes.write(
      lane,
      { gen: purges, epoch, accountId, now },
      async (session, changes) => {
        const facts = await readFacts(crawlerId, rids, session);
        const sent = await stillSent(settled, session);
        const writes = jobWrites(writing, facts, { ended, started }, changes);
        for (const each of sent) changes.addSettled(each);
        if (writes.gone.length > 0) {
          const gone = writes.gone.map(({ rid }) => rid);
          await jobs.deleteMany({ _id: { $in: gone } }, { session });
        }
        await freeKeys(collections, crawlerId, writes.gone, 'ended', session);
        await countBatchEnds(collections, lane, { ends: changes.batchEnds, keptAt }, session);
        if (writes.results.length > 0) await results.insertMany(writes.results, { session });
        if (writes.deliveries.length > 0) {
          await deliveries.insertMany(writes.deliveries, { session });
        }
        await updateEach(jobs, writes.updates, session);
        const settlements = [...sent].map((each) => settleUpdate(each, now));
        await updateEach(deliveries, settlements, session);
        if (claimed.length > 0) {
          await deliveries.updateMany(
            { _id: { $in: [...claimed] }, state: 'due' },
            { $set: { state: 'sending', epoch: epoch as number }, $inc: { attempt: 1 } },
            { session },
          );
        }
        return { writes, sent };
      },
    );
    await wakeOthers(crawlerId, writes, sent, now, epoch);
    return { ended: writes.ended, started: writes.started, settled: sent };
  };

  /** Tells those who deliver for the crawler of what is due. */
  async function wakeOthers(
    crawlerId: string,
    { deliveries: made }: JobWrites,
    settled: ReadonlySet<DeliveryOutcome>,
    now: Date,
    epoch: number | undefined,
  ): Promise<void> {
    const isHelper = epoch !== undefined && isShare({ epoch });
    const again =
      isHelper && [...settled].some(({ kind }) => kind === 'retry' || kind === 'release');
    if (again || made.some(({ state }) => state === 'due')) {
      await wakeNow(collections, crawlerId, now, 'delivery');
    }
  }
}

/** Reads as many documents as there are ids in one reply. */
function inOneReply<Fields>(ids: readonly string[], projection: Fields) {
  return { projection, batchSize: ids.length + 1 };
}

async function updateEach<T extends object>(
  collection: Collection<T>,
  updates: readonly UpdateOneModel<T>[],
  session: ClientSession,
): Promise<void> {
  if (updates.length === 0) return;
  await collection.bulkWrite(
    updates.map((updateOne) => ({ updateOne })),
    { session },
  );
}

/** Creates `QueueStore.finish`. */
export function createFinish(
  collections: Collections,
  lanes: Lanes,
  writeWork: WriteWork,
): QueueStore['finish'] {
  async function finishOwn(
    crawlerId: string,
    ended: readonly JobOutcome[],
    now: Date,
  ): Promise<ReadonlySet<JobOutcome>> {
    // Before the crawler is read, so that a purge after that finds the part.
    await lanes.enlist(crawlerId, 'turn', now);
    const crawler = await readPurges(collections, crawlerId);
    if (crawler === null) return new Set();
    const work = { ended, started: [], settled: [], claimed: [] };
    return (await writeWork(crawler, work, now)).ended;
  }

  return async (outcomes, now) => {
    const byCrawler = Map.groupBy(outcomes, (each) => each.crawlerId);
    const wins = await Promise.all(
      [...byCrawler].map(([crawlerId, own]) =>
        lanes.runExclusive(crawlerId, () =>
          lanes.untilWritten(() => finishOwn(crawlerId, own, now)),
        ),
      ),
    );
    return outcomes.map((each) => (wins.some((won) => won.has(each)) ? 'won' : 'lost'));
  };
}
