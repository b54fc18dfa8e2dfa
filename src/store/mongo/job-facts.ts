import { defined } from '../../domain/defined.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { Collections, JobDocument } from './collections.ts';

const FIELDS = {
  attempt: 1,
  retry: 1,
  gen: 1,
  size: 1,
  state: 1,
  epoch: 1,
  priority: 1,
  uniqueKey: 1,
  batchId: 1,
} as const;

/** What a write on a job has to know of it. */
export type JobFacts = Pick<JobDocument, keyof typeof FIELDS>;

/** Jobs that one process remembers: those that its runs have found, or have in flight. */
const MAX_KNOWN = 50_000;

/** What this process knows of jobs, so that it need not read them again to write their ends. */
export interface KnownJobs {
  /** Remembers a job that was found in the queue, or whose start was written. */
  note(rid: string, facts: JobFacts): void;
  /**
   * The facts of each job, which are forgotten: what a write does that fails is unknown. Reads those
   * that are not known in the attempt named, or the one before.
   */
  take(
    crawlerId: string,
    jobs: readonly { readonly rid: string; readonly attempt: number }[],
  ): Promise<ReadonlyMap<string, JobFacts>>;
}

/** Knows nothing at first. */
export function createKnownJobs(collections: Collections): KnownJobs {
  const known = createLruMap<string, JobFacts>({ maxEntries: MAX_KNOWN });
  return {
    note(rid, { attempt, retry, gen, size, state, epoch, priority, uniqueKey, batchId }) {
      known.set(rid, {
        attempt,
        retry,
        gen,
        size,
        state,
        priority,
        ...defined({ epoch, uniqueKey, batchId }),
      });
    },
    async take(crawlerId, jobs) {
      const found = new Map<string, JobFacts>();
      const missing: string[] = [];
      for (const { rid, attempt } of jobs) {
        const facts = known.get(rid);
        known.delete(rid);
        if (facts === undefined || attempt - facts.attempt > 1) missing.push(rid);
        else found.set(rid, facts);
      }
      if (missing.length === 0) return found;
      const read = await collections.jobs
        .find({ _id: { $in: missing }, crawlerId }, { projection: FIELDS })
        .toArray();
      for (const { _id, ...facts } of read) found.set(_id, facts);
      return found;
    },
  };
}
