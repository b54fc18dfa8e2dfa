import { addByDate, type DayCounts } from '../../domain/stats.ts';
import type { DayRange, StatsStore } from '../store.ts';
import type { Collections } from './collections.ts';
import type { Lanes } from './lanes.ts';
import { queueDepths } from './queue-depths.ts';
import { readSamples } from './samples.ts';

/** A day of a crawler, or a part of one. */
interface DayPart {
  readonly crawlerId: string;
  readonly entry: readonly [date: string, counts: DayCounts];
}

/** History by day. The latest days are with the counters of their crawler, the others in their own documents. */
export function createStats(collections: Collections, { transactions }: Lanes): StatsStore {
  const { counts, history } = collections;

  async function read(
    crawlerIds: readonly string[],
    { from = '', to = '9999-99-99' }: DayRange,
  ): Promise<DayPart[]> {
    const crawlerId = { $in: [...crawlerIds] };
    // Of one moment, because days move from one to the other.
    const [latest, past] = await transactions.run(async (session) => [
      await counts
        .find({ crawlerId }, { projection: { crawlerId: 1, days: 1 }, session })
        .toArray(),
      await history.find({ crawlerId, day: { $gte: from, $lte: to } }, { session }).toArray(),
    ]);
    const parts: DayPart[] = past.map((each) => ({
      crawlerId: each.crawlerId,
      entry: [each.day, each.counts],
    }));
    for (const each of latest) {
      for (const entry of Object.entries(each.days ?? {})) {
        if (entry[0] >= from && entry[0] <= to) parts.push({ crawlerId: each.crawlerId, entry });
      }
    }
    return parts;
  }

  return {
    queueDepths: (limit) => queueDepths(collections, limit),

    samples: (crawlerIds, since) => readSamples(collections, crawlerIds, since),

    async history(crawlerIds, range) {
      const parts = Map.groupBy(await read(crawlerIds, range), ({ crawlerId }) => crawlerId);
      return new Map(
        crawlerIds.map((id) => [id, addByDate((parts.get(id) ?? []).map(({ entry }) => entry))]),
      );
    },

    async historySums(crawlerIds, range) {
      const parts = await read(crawlerIds, range);
      return { days: addByDate(parts.map(({ entry }) => entry)), count: parts.length };
    },
  };
}
