import type { ClientSession } from 'mongodb';
import { toWall } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { Job } from '../../domain/job.ts';
import type { Collections, CrawlerDocument, UniqueKeyDocument } from './collections.ts';
import { findIds } from './find-ids.ts';
import { Fenced } from './lanes.ts';
import { isDuplicate } from './mongo-errors.ts';

/** A crawler as its keys know it. */
type KeyedCrawler = Pick<CrawlerDocument, '_id' | 'purges'>;

/** Jobs of a push by their unique keys. */
export interface KeyedJobs {
  /** The jobs that are to be inserted. */
  readonly fresh: readonly Job[];
  /** Of each other job the `rid` of the one that has its key. */
  readonly firsts: ReadonlyMap<Job, string>;
  /**
   * Gives the keys of the first `n` of the fresh jobs to them, within their transaction. Throws
   * {@link Fenced} if another push has taken one since they were read.
   */
  take(n: number, session: ClientSession): Promise<void>;
}

/** The unique keys of the jobs of a push, as they were read. */
export interface ReadKeys {
  /** Whether a job of an earlier push has the key of this one. */
  isHeld(job: Job): boolean;
  /** Divides some of these jobs; the first of several with one key is fresh. */
  divide(jobs: readonly Job[]): KeyedJobs;
}

/** Finds the jobs whose unique keys others have; reads nothing if none of the jobs has one. */
export async function readKeys(
  collections: Collections,
  crawler: KeyedCrawler,
  jobs: readonly Job[],
  now: Date,
): Promise<ReadKeys> {
  const { uniqueKeys, time } = collections;
  const idOf = ({ unique }: Job): string => keyId(crawler._id, unique?.key ?? '');
  const keyed = jobs.filter(({ unique }) => unique !== undefined);
  const found =
    keyed.length === 0 ? [] : await uniqueKeys.find({ _id: { $in: keyed.map(idOf) } }).toArray();
  const holding = await stillHeld(collections, crawler, found, now);
  const held = new Map(holding.map(({ _id, rid }) => [_id, rid]));
  const ended = found.filter(({ _id }) => !held.has(_id));

  async function take(jobsOfKeys: readonly Job[], session: ClientSession): Promise<void> {
    const taken = jobsOfKeys.flatMap((job): UniqueKeyDocument[] => {
      const { rid, unique } = job;
      if (unique === undefined) return [];
      const expiresAt = unique.until && toWall(time, unique.until);
      const key = { _id: idOf(job), crawlerId: crawler._id, rid, gen: crawler.purges };
      return [{ ...key, ...defined({ expiresAt }) }];
    });
    if (taken.length === 0) return;
    const ids = new Set(taken.map(({ _id }) => _id));
    const replaced = ended.filter(({ _id }) => ids.has(_id)).map(({ _id, rid }) => ({ _id, rid }));
    if (replaced.length > 0) await uniqueKeys.deleteMany({ $or: replaced }, { session });
    // In one order, so that two pushes of the same new URLs do not wait for each other.
    const ordered = taken.toSorted((one, other) => (one._id < other._id ? -1 : 1));
    try {
      await uniqueKeys.insertMany(ordered, { session });
    } catch (error) {
      if (isDuplicate(error)) throw new Fenced();
      throw error;
    }
  }

  return {
    isHeld: (job) => job.unique !== undefined && held.has(idOf(job)),
    divide(some) {
      const heldBy = new Map(held);
      const fresh: Job[] = [];
      const firsts = new Map<Job, string>();
      for (const job of some) {
        const first = job.unique === undefined ? undefined : heldBy.get(idOf(job));
        if (first !== undefined) {
          firsts.set(job, first);
          continue;
        }
        fresh.push(job);
        if (job.unique !== undefined) heldBy.set(idOf(job), job.rid);
      }
      return { fresh, firsts, take: (n, session) => take(fresh.slice(0, n), session) };
    },
  };
}

/** Those of the keys that hold. */
async function stillHeld(
  { jobs, time }: Collections,
  { purges }: KeyedCrawler,
  keys: readonly UniqueKeyDocument[],
  now: Date,
): Promise<UniqueKeyDocument[]> {
  const current = keys.filter(({ gen }) => gen === purges);
  const rids = current.filter(({ expiresAt }) => expiresAt === undefined).map(({ rid }) => rid);
  const queued = new Set(rids.length === 0 ? [] : await findIds(jobs, { _id: { $in: rids } }));
  const shown = toWall(time, now);
  return current.filter(({ rid, expiresAt }) =>
    expiresAt === undefined ? queued.has(rid) : expiresAt > shown,
  );
}

/** A job and its key, if it has one. */
interface KeyOfJob {
  readonly rid: string;
  readonly uniqueKey?: string | undefined;
}

/** Frees the keys of jobs that are gone; one that holds until a time only if its job was removed. */
export async function freeKeys(
  { uniqueKeys }: Collections,
  crawlerId: string,
  jobs: readonly KeyOfJob[],
  how: 'ended' | 'removed',
  session: ClientSession,
): Promise<void> {
  const held = jobs.flatMap(({ rid, uniqueKey }) =>
    uniqueKey === undefined ? [] : [{ _id: keyId(crawlerId, uniqueKey), rid }],
  );
  if (held.length === 0) return;
  const which = how === 'ended' ? { expiresAt: { $exists: false } } : {};
  await uniqueKeys.deleteMany({ $or: held, ...which }, { session });
}

function keyId(crawlerId: string, key: string): string {
  return `${crawlerId}/${key}`;
}
