import { addDays, type DayCounts, type HistoryDay, toHistoryDay } from '../../domain/stats.ts';
import type { StatsStore } from '../store.ts';
import type { Collections } from './collections.ts';
import type { Lanes } from './lanes.ts';
import { queueDepths } from './queue-depths.ts';
import { readSamples } from './samples.ts';

/** History by day. The latest days are with the counters of their crawler, the others in their own documents. */
export function createStats(collections: Collections, { transactions }: Lanes): StatsStore {
  const { counts, history } = collections;
  return {
    queueDepths: (limit) => queueDepths(collections, limit),

    samples: (crawlerIds, since) => readSamples(collections, crawlerIds, since),

    async history(crawlerIds, { from = '', to = '9999-99-99' }) {
      const ids = [...crawlerIds];
      const crawlerId = { $in: ids };
      // Of one moment, because days move from one to the other.
      const [parts, past] = await transactions.run(async (session) => [
        await counts
          .find({ crawlerId }, { projection: { crawlerId: 1, days: 1 }, session })
          .toArray(),
        await history.find({ crawlerId, day: { $gte: from, $lte: to } }, { session }).toArray(),
      ]);
      const days = new Map(ids.map((id) => [id, new Map<string, DayCounts>()]));
      const add = (id: string, day: string, numbers: DayCounts): void => {
        const own = days.get(id);
        if (day >= from && day <= to) own?.set(day, addDays([own.get(day) ?? {}, numbers]));
      };
      for (const each of past) add(each.crawlerId, each.day, each.counts);
      for (const part of parts) {
        for (const [day, numbers] of Object.entries(part.days ?? {})) {
          add(part.crawlerId, day, numbers);
        }
      }
      return new Map(
        [...days].map(([id, own]) => [
          id,
          [...own].map(([day, numbers]) => toHistoryDay(day, numbers)).toSorted(byDate),
        ]),
      );
    },
  };
}

function byDate(a: HistoryDay, b: HistoryDay): number {
  return a.date < b.date ? -1 : 1;
}
