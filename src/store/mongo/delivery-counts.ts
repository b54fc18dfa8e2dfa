import type { Collections } from './collections.ts';
import { type Delta, toUpdate } from './counts.ts';
import { recount } from './recount.ts';

/** How often the crawler has been recounted; undefined when it is gone. */
export async function readRecounts(
  collections: Collections,
  crawlerId: string,
): Promise<number | undefined> {
  const crawler = await collections.crawlers.findOne(
    { _id: crawlerId },
    { projection: { recounts: 1 } },
  );
  return crawler?.recounts;
}

/**
 * Writes what changes of deliveries have changed in the counters. `read` is {@link readRecounts} as
 * it was before the first of them: a recount since then may have seen them or not, so the pending
 * ones are recounted instead.
 */
export async function countDeliveries(
  collections: Collections,
  crawlerId: string,
  { delta, read, now }: { delta: Delta; read: number | undefined; now: Date },
): Promise<void> {
  const pending = delta.increments.deliveriesPending ?? 0;
  if (pending !== 0 && read !== undefined) {
    const { matchedCount } = await collections.crawlers.updateOne(
      { _id: crawlerId, recounts: read },
      toUpdate(delta),
    );
    if (matchedCount > 0) return;
    delta.add('deliveriesPending', -pending);
  }
  const update = toUpdate(delta);
  if (Object.keys(update).length > 0) {
    await collections.crawlers.updateOne({ _id: crawlerId }, update);
  }
  if (pending !== 0) await recount(collections, crawlerId, now);
}
