import type { ClientSession, Collection, UpdateOneModel } from 'mongodb';
import { toWall } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import { databaseUnavailable } from '../../domain/errors.ts';
import { isShare } from '../share-store.ts';
import type { DeliveryOutcome, JobOutcome, QueueStore, StartedJob } from '../store.ts';
import { countBatchEnds } from './batch-parts.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { settleUpdate } from './deliveries.ts';
import { expectAll, type JobWrites, jobWrites, Mismatch } from './endings.ts';
import type { KnownJobs } from './job-facts.ts';
import type { Lane, Lanes } from './lanes.ts';
import { wakeNow } from './lease.ts';
import { readPurges } from './queue-reads.ts';
import { freeKeys } from './unique-keys.ts';

/** What one transaction writes of a crawler. */
export interface Work {
  readonly ended: readonly JobOutcome[];
  readonly started: readonly StartedJob[];
  readonly settled: readonly DeliveryOutcome[];
  /** Due deliveries that the lease claims. */
  readonly claimed: readonly string[];
}

/** What of it was written. */
export interface Written extends Pick<JobWrites, 'ended' | 'started' | 'repeated'> {
  readonly settled: ReadonlySet<DeliveryOutcome>;
}

type Crawler = Pick<CrawlerDocument, '_id' | 'accountId' | 'purges'>;

const MAX_MISMATCHES = 10;

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
export function createWriteWork(
  collections: Collections,
  lanes: Lanes,
  known: KnownJobs,
): WriteWork {
  const { jobs, deliveries, results } = collections;

  async function apply(
    session: ClientSession,
    writes: JobWrites,
    settled: readonly DeliveryOutcome[],
    { lane, now, keptAt }: { readonly lane: Lane; readonly now: Date; readonly keptAt: Date },
  ): Promise<void> {
    const { crawlerId } = lane;
    for (const { filter, rids } of writes.removed) {
      const gone = await jobs.deleteMany({ _id: { $in: [...rids] }, ...filter }, { session });
      expectAll(gone.deletedCount, rids.length);
    }
    await freeKeys(collections, crawlerId, writes.gone, 'ended', session);
    await countBatchEnds(collections, lane, { ends: writes.changes.batchEnds, keptAt }, session);
    if (writes.results.length > 0) await results.insertMany(writes.results, { session });
    if (writes.deliveries.length > 0) await deliveries.insertMany(writes.deliveries, { session });
    await updateEach(jobs, writes.updates, session);
    const settlements = settled.map((each) => settleUpdate(each, now));
    await updateEach(deliveries, settlements, session);
  }

  /** The outcomes of deliveries that still are in the attempt named. */
  async function stillSent(outcomes: readonly DeliveryOutcome[]): Promise<DeliveryOutcome[]> {
    if (outcomes.length === 0) return [];
    const found = await deliveries
      .find(
        { _id: { $in: outcomes.map(({ rid }) => rid) }, state: 'sending' },
        { projection: { attempt: 1, crawlerId: 1 } },
      )
      .toArray();
    const sent = new Map(found.map((each) => [each._id, each]));
    return outcomes.filter(({ rid, attempt, crawlerId }) => {
      const delivery = sent.get(rid);
      sent.delete(rid);
      return delivery?.attempt === attempt && delivery.crawlerId === crawlerId;
    });
  }

  return async (crawler, work, now, epoch) => {
    const { _id: crawlerId, accountId, purges } = crawler;
    const keptAt = toWall(collections.time, now);
    const writing = { crawlerId, accountId, purges, now, keptAt, epoch };
    let { settled } = work;
    for (let tries = 1; ; tries += 1) {
      const facts = await known.take(crawlerId, [...work.ended, ...work.started]);
      const writes = jobWrites(writing, facts, work.ended, work.started);
      const { ended, started, repeated } = writes;
      const written = { ended, started, repeated, settled: new Set(settled) };
      const changes = [writes.gone, writes.updates, settled, work.claimed];
      if (changes.every(({ length }) => length === 0)) return written;
      for (const each of settled) writes.changes.addSettled(each);
      const lane = await lanes.enlist(crawlerId, 'turn', now, epoch);
      try {
        await lanes.write(
          lane,
          { gen: purges, epoch, accountId, now },
          async (session) => {
            await apply(session, writes, settled, { lane, now, keptAt });
            if (work.claimed.length > 0) {
              await deliveries.updateMany(
                { _id: { $in: [...work.claimed] }, state: 'due' },
                { $set: { state: 'sending', epoch: epoch as number }, $inc: { attempt: 1 } },
                { session },
              );
            }
          },
          writes.changes,
        );
      } catch (error) {
        if (!(error instanceof Mismatch)) throw error;
        if (tries === MAX_MISMATCHES) throw databaseUnavailable(undefined, error);
        settled = await stillSent(settled);
        continue;
      }
      for (const { start, facts: before } of started) {
        known.note(start.rid, {
          ...before,
          attempt: start.attempt,
          state: 'running',
          ...defined({ epoch }),
        });
      }
      await wakeOthers(crawlerId, writes, settled, now, epoch);
      return written;
    }
  };

  /** Tells those who deliver for the crawler of what is due. */
  async function wakeOthers(
    crawlerId: string,
    { deliveries: made }: JobWrites,
    settled: readonly DeliveryOutcome[],
    now: Date,
    epoch: number | undefined,
  ): Promise<void> {
    const isHelper = epoch !== undefined && isShare({ epoch });
    const again = isHelper && settled.some(({ kind }) => kind === 'retry' || kind === 'release');
    if (again || made.some(({ state }) => state === 'due')) {
      await wakeNow(collections, crawlerId, now, 'delivery');
    }
  }
}

/** Updates documents, each of which must still be as its filter says. */
async function updateEach<T extends object>(
  collection: Collection<T>,
  updates: readonly UpdateOneModel<T>[],
  session: ClientSession,
): Promise<void> {
  if (updates.length === 0) return;
  const statements = updates.map((updateOne) => ({ updateOne }));
  const { matchedCount } = await collection.bulkWrite(statements, { session });
  expectAll(matchedCount, updates.length);
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
