import { toWall } from '../../domain/clock.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { toDay } from '../../domain/stats.ts';
import type { Collections, CountsDocument } from './collections.ts';
import { addedParts, dayIncrements } from './counts-document.ts';
import type { Lanes } from './lanes.ts';
import { readPurges } from './queue-reads.ts';

/** How long a part of a crawler's counters is unused before it is added to the crawler's own. */
const UNUSED_MS = 60_000;

/**
 * Moves days that are over to the history, so that the parts of a crawler's counters stay small. A day
 * that is written again after that is added to the one in the history.
 */
export async function moveDays(
  { counts, history, time }: Collections,
  lanes: Lanes,
  now: Date,
  batch: number,
  goesOn: () => boolean,
): Promise<void> {
  // Yesterday stays: most late writes come within minutes.
  const yesterday = toDay(new Date(toWall(time, now).getTime() - DAY_MS));
  const projection = { days: 1 } as const;
  for (;;) {
    const old = await counts
      .find({ firstDay: { $lt: yesterday } }, { projection: { crawlerId: 1 } })
      .limit(batch)
      .toArray();
    for (const { _id, crawlerId } of old) {
      await lanes.transact(crawlerId, async (session) => {
        const part = await counts.findOne({ _id }, { projection, session });
        const days = Object.entries(part?.days ?? {});
        if (part === null) return;
        const over = days.filter(([day]) => day < yesterday);
        const next = days.map(([day]) => day).filter((day) => day >= yesterday);
        for (const [day, numbers] of over) {
          await history.updateOne(
            { _id: `${crawlerId}/${day}` },
            { $inc: dayIncrements('counts', numbers), $setOnInsert: { crawlerId, day } },
            { upsert: true, session },
          );
        }
        const $unset = Object.fromEntries(over.map(([day]) => [`days.${day}`, '' as const]));
        const firstDay = next.toSorted()[0];
        await counts.updateOne(
          { _id },
          firstDay === undefined
            ? { $unset: { ...$unset, firstDay: '' } }
            : { ...(over.length > 0 ? { $unset } : {}), $set: { firstDay } },
          { session },
        );
      });
    }
    if (old.length < batch || !goesOn()) return;
  }
}

/**
 * Adds parts of counters that their processes have not used for a while to the crawlers' own. A
 * process that continues after that begins a new part.
 */
export async function gatherParts(
  { counts, crawlers }: Collections,
  lanes: Lanes,
  now: Date,
  batch: number,
): Promise<void> {
  const unused = { at: { $lt: new Date(now.getTime() - UNUSED_MS) } };
  const old = await counts
    .find(unused, { projection: { crawlerId: 1, session: 1 } })
    .limit(batch)
    .toArray();
  for (const [crawlerId, parts] of Map.groupBy(old, (each) => each.crawlerId)) {
    // Of a process that died in a transaction.
    await lanes.abort(parts);
    const crawler = await readPurges({ crawlers }, crawlerId);
    const ids = { _id: { $in: parts.map(({ _id }) => _id) }, ...unused };
    if (crawler === null) {
      await counts.deleteMany(ids);
      continue;
    }
    const { purges: gen, accountId } = crawler;
    await lanes.raise(crawlerId, gen, now);
    await lanes.transact(crawlerId, async (session) => {
      const found: CountsDocument[] = await counts.find({ ...ids, gen }, { session }).toArray();
      const own = await counts.findOne(
        { _id: crawlerId },
        { projection: { gen: 1, last: 1, failing: 1 }, session },
      );
      // A purge has come between; the next call does it.
      if (found.length === 0 || (own !== null && own.gen !== gen)) return;
      await counts.deleteMany({ _id: { $in: found.map(({ _id }) => _id) } }, { session });
      const { added, failing } = addedParts(found, own);
      await counts.updateOne(
        { _id: crawlerId },
        { ...added, $set: { accountId, failing }, $setOnInsert: { crawlerId, gen } },
        { upsert: true, session },
      );
    });
  }
}
