import { DAY_MS } from '../../domain/durations.ts';
import { createRid } from '../../domain/rid.ts';
import { type DayCounts, toDay } from '../../domain/stats.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { isDuplicate } from './errors.ts';

const REMEMBERED_MOVES = 20;

/**
 * Moves days that are over to the history, so that a crawler's document stays small. A day that is
 * written again after that, by a process that was stopped or a late recovery, is added to the one
 * in the history.
 */
export async function moveDays(
  collections: Collections,
  now: Date,
  batch: number,
  goesOn: () => boolean,
): Promise<void> {
  // Yesterday stays: most late writes come within minutes.
  const yesterday = toDay(new Date(now.getTime() - DAY_MS));
  for (;;) {
    const crawlers = await collections.crawlers
      .find({ firstDay: { $lt: yesterday } }, { projection: { days: 1, moving: 1 } })
      .limit(batch)
      .toArray();
    await Promise.all(crawlers.map((each) => moveCrawlerDays(collections, each, yesterday, now)));
    if (crawlers.length < batch || !goesOn()) return;
  }
}

async function moveCrawlerDays(
  collections: Collections,
  { _id, days, moving = {} }: Pick<CrawlerDocument, '_id' | 'days' | 'moving'>,
  yesterday: string,
  now: Date,
): Promise<void> {
  for (const [day, { id, counts }] of Object.entries(moving))
    await addDay(collections, _id, day, id, counts);
  const over = Object.keys(days).filter((day) => day < yesterday);
  for (const day of over) {
    const id = createRid(now);
    const after = await collections.crawlers.findOneAndUpdate(
      { _id, [`days.${day}`]: { $exists: true }, [`moving.${day}`]: { $exists: false } },
      [{ $set: { [`moving.${day}`]: { id, counts: `$days.${day}` } } }, { $unset: `days.${day}` }],
      { returnDocument: 'after', projection: { moving: 1 } },
    );
    const moved = after?.moving?.[day];
    if (moved !== undefined) await addDay(collections, _id, day, id, moved.counts);
  }
  const next = Object.keys(days)
    .filter((day) => day >= yesterday)
    .toSorted()[0];
  await collections.crawlers.updateOne(
    { _id, firstDay: { $lt: yesterday } },
    next === undefined ? { $unset: { firstDay: '' } } : { $set: { firstDay: next } },
  );
}

/** Adds the counts of a move to the history, once, and removes the move from the crawler. */
async function addDay(
  collections: Collections,
  crawlerId: string,
  day: string,
  id: string,
  counts: DayCounts,
): Promise<void> {
  try {
    await collections.history.updateOne(
      { _id: `${crawlerId}/${day}`, moved: { $ne: id } },
      {
        $inc: toIncrements(counts),
        $push: { moved: { $each: [id], $slice: -REMEMBERED_MOVES } },
        $setOnInsert: { crawlerId, day },
      },
      { upsert: true },
    );
  } catch (error) {
    // The history contains this move already.
    if (!isDuplicate(error)) throw error;
  }
  await collections.crawlers.updateOne(
    { _id: crawlerId, [`moving.${day}.id`]: id },
    { $unset: { [`moving.${day}`]: '' } },
  );
}

function toIncrements({ byCbStatus = {}, ...fields }: DayCounts): Record<string, number> {
  return Object.fromEntries([
    // A day without any number has counts, too.
    ['counts.pushed', 0],
    ...Object.entries(fields).map(([field, n]) => [`counts.${field}`, n]),
    ...Object.entries(byCbStatus).map(([status, n]) => [`counts.byCbStatus.${status}`, n]),
  ]) as Record<string, number>;
}
