import type { HistoryDay } from '../../domain/stats.ts';
import type { StatsStore } from '../store.ts';
import type { Collections, DayCounts } from './collections.ts';

/** History by day: the latest days are with their crawler, the others have documents of their own. */
export function createStats(c: Collections): StatsStore {
  return {
    async history(crawlerIds, { from = '', to = '9999-99-99' }) {
      const ids = [...crawlerIds];
      // First the crawlers: a day that moves in between is then read twice, not missed.
      const crawlers = await c.crawlers
        .find({ _id: { $in: ids } }, { projection: { days: 1 } })
        .toArray();
      const past = await c.history
        .find({ crawlerId: { $in: ids }, day: { $gte: from, $lte: to } })
        .toArray();
      const days = new Map(ids.map((id) => [id, new Map<string, DayCounts>()]));
      for (const { crawlerId, day, counts } of past) days.get(crawlerId)?.set(day, counts);
      for (const crawler of crawlers) {
        for (const [day, counts] of Object.entries(crawler.days)) {
          if (day >= from && day <= to) days.get(crawler._id)?.set(day, counts);
        }
      }
      return new Map(
        [...days].map(([id, own]) => [
          id,
          [...own].map(([day, counts]) => dayFrom(day, counts)).toSorted(byDate),
        ]),
      );
    },
  };
}

function byDate(a: HistoryDay, b: HistoryDay): number {
  return a.date < b.date ? -1 : 1;
}

function dayFrom(date: string, counts: DayCounts): HistoryDay {
  const none = {
    pushed: 0,
    success: 0,
    failed: 0,
    retries: 0,
    timeouts: 0,
    deleted: 0,
    purged: 0,
    deliveries: 0,
    deliveryFailures: 0,
    billed: 0,
    byCbStatus: {},
  };
  return { date, ...none, ...counts };
}
