import { addDays, type DayCounts, type HistoryDay, toHistoryDay } from '../../domain/stats.ts';
import type { StatsStore } from '../store.ts';
import type { Collections } from './collections.ts';
import { queueDepths } from './queue-depths.ts';

/** History by day. The latest days are in their crawler's document, the others in their own. */
export function createStats(collections: Collections): StatsStore {
  return {
    queueDepths: (limit) => queueDepths(collections, limit),

    async history(crawlerIds, { from = '', to = '9999-99-99' }) {
      const ids = [...crawlerIds];
      const { crawlers, past } = await readDays(collections, ids, from, to);
      const days = new Map(ids.map((id) => [id, new Map<string, DayCounts>()]));
      const add = (id: string, day: string, counts: DayCounts): void => {
        const own = days.get(id);
        if (day >= from && day <= to) own?.set(day, addDays([own.get(day) ?? {}, counts]));
      };
      const moved = new Map(past.map((each) => [each._id, each.moved ?? []]));
      for (const { crawlerId, day, counts } of past) add(crawlerId, day, counts);
      for (const crawler of crawlers) {
        for (const [day, counts] of Object.entries(crawler.days)) add(crawler._id, day, counts);
        for (const [day, { id, counts }] of Object.entries(crawler.moving ?? {})) {
          const isThere = moved.get(`${crawler._id}/${day}`)?.includes(id) === true;
          if (!isThere) add(crawler._id, day, counts);
        }
      }
      return new Map(
        [...days].map(([id, own]) => [
          id,
          [...own].map(([day, counts]) => toHistoryDay(day, counts)).toSorted(byDate),
        ]),
      );
    },
  };
}

/** Reads the days of crawlers so that a day that is being moved to the history counts once. */
async function readDays(
  collections: Collections,
  ids: readonly string[],
  from: string,
  to: string,
) {
  const read = () =>
    collections.crawlers
      .find({ _id: { $in: [...ids] } }, { projection: { days: 1, moving: 1 } })
      .toArray();
  let crawlers = await read();
  for (;;) {
    const past = await collections.history
      .find({ crawlerId: { $in: [...ids] }, day: { $gte: from, $lte: to } })
      .toArray();
    const there = new Set(past.map((each) => each._id));
    const doubtful = (rows: typeof crawlers): string =>
      rows
        .flatMap(({ _id, days }) => Object.keys(days).map((day) => `${_id}/${day}`))
        .filter((each) => there.has(each))
        .sort()
        .join();
    if (doubtful(crawlers) === '') return { crawlers, past };
    // A day is in both: it was written late, or moved after the crawlers were read.
    const again = await read();
    if (doubtful(again) === doubtful(crawlers)) return { crawlers, past };
    crawlers = again;
  }
}

function byDate(a: HistoryDay, b: HistoryDay): number {
  return a.date < b.date ? -1 : 1;
}
