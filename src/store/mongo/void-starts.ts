import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { removeRecordsOf } from './removal.ts';
import { isUnapplied, toMarkedBatch } from './tombstones.ts';

type CrawlerFields = Pick<CrawlerDocument, '_id' | 'applied' | 'fenced' | 'purges'>;
type Started = Pick<JobDocument, '_id' | 'gen' | 'mark'>;

/** Whether a running job was started by a write that the counters do not contain. */
export function isUncountedStart(
  crawler: Pick<CrawlerFields, 'applied' | 'fenced'>,
  { mark }: Pick<JobDocument, 'mark'>,
): boolean {
  const batch = toMarkedBatch(mark);
  return batch !== undefined && isUnapplied(crawler, batch);
}

/**
 * Removes the running jobs whose start was not counted before a purge: it has counted them as
 * waiting ones, and refuses the count of their start. Their process takes them back itself, unless
 * it is dead or has lost its database. Returns how many there were.
 */
export async function removeVoidStarts(
  collections: Collections,
  crawler: CrawlerFields,
  running: readonly Started[],
  now: Date,
): Promise<number> {
  const isVoid = (each: Started): boolean =>
    each.gen < crawler.purges && isUncountedStart(crawler, each);
  const { _id: crawlerId } = crawler;
  const found = running.filter(isVoid);
  if (found.length === 0) return 0;
  const removed = await Promise.all(
    found.map(({ _id, mark = '' }) =>
      collections.jobs.findOneAndDelete(
        { _id, state: 'running', mark },
        { projection: { _id: 1 } },
      ),
    ),
  );
  const gone = removed.flatMap((each) => (each === null ? [] : each._id));
  await removeRecordsOf(collections, crawlerId, gone, now);
  return found.length;
}
