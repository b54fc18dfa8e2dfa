import { toWall } from '../../domain/clock.ts';
import type { CrawlerStore } from '../store.ts';
import type { Collections } from './collections.ts';
import { NOT_SCHEDULED, toCrawler } from './crawler-document.ts';
import { findIds } from './find-ids.ts';

/** Claims and notes of the probes of callback URLs. */
export function createProbes(
  collections: Collections,
): Pick<CrawlerStore, 'claimProbes' | 'postponeProbes' | 'noteProbes' | 'lateProbes'> {
  const { crawlers, time } = collections;
  return {
    async claimProbes(now, intervalMs, limit) {
      await scheduleFirstProbes(collections, now, intervalMs);
      const first = { sort: { probeAt: 1 }, limit } as const;
      const ids = await findIds(crawlers, { probeAt: { $lte: now } }, first);
      if (ids.length === 0) return [];
      const probeAt = new Date(now.getTime() + intervalMs);
      const probeClaim = crypto.randomUUID();
      const move = { $set: { probeAt, probeClaim } };
      await crawlers.updateMany({ _id: { $in: ids }, probeAt: { $lte: now } }, move);
      const own = { _id: { $in: ids }, probeClaim };
      const urls = await crawlers.find(own, { projection: { callbackUrl: 1 } }).toArray();
      const callbackUrl = { $in: urls.map((each) => each.callbackUrl) };
      // Crawlers that have the same URL but are due later, or were claimed by another caller at the
      // same moment, get the same result.
      await crawlers.updateMany(
        { callbackUrl, probeAt: { $gt: NOT_SCHEDULED, $lt: probeAt } },
        move,
      );
      const claimed = await crawlers
        .find({ callbackUrl, probeAt: { $gt: NOT_SCHEDULED }, probeClaim })
        .toArray();
      return claimed.map(toCrawler);
    },

    async postponeProbes(probes) {
      if (probes.length === 0) return;
      const moves = probes.map(({ crawlerId, dueAt }) => ({
        updateOne: { filter: { _id: crawlerId }, update: { $set: { probeAt: dueAt } } },
      }));
      await crawlers.bulkWrite(moves, { ordered: false });
    },

    async noteProbes(crawlerIds, now) {
      if (crawlerIds.length === 0) return;
      await crawlers.updateMany(
        { _id: { $in: [...crawlerIds] } },
        { $set: { 'last.probe': toWall(time, now) } },
      );
    },

    lateProbes: (before) =>
      crawlers.countDocuments({
        probeAt: { $exists: true },
        updatedAt: { $lt: before },
        'last.probe': { $not: { $gte: before } },
      }),
  };
}

/**
 * Schedules new crawlers with the next probe of their URL if that is known, else at a random moment
 * within the first interval, so that probes are spread evenly.
 */
async function scheduleFirstProbes(
  collections: Collections,
  now: Date,
  intervalMs: number,
): Promise<void> {
  const fresh = await collections.crawlers
    .find({ probeAt: NOT_SCHEDULED }, { projection: { callbackUrl: 1 } })
    .limit(1_000)
    .toArray();
  if (fresh.length === 0) return;
  const callbackUrl = { $in: [...new Set(fresh.map((each) => each.callbackUrl))] };
  const known = await collections.crawlers
    .find(
      { callbackUrl, probeAt: { $gt: NOT_SCHEDULED } },
      { projection: { callbackUrl: 1, probeAt: 1 } },
    )
    .toArray();
  const next = new Map(known.map((each) => [each.callbackUrl, each.probeAt]));
  const moves = fresh.map(({ _id, callbackUrl: url }) => {
    const random = new Date(now.getTime() + Math.floor(Math.random() * intervalMs));
    const probeAt = next.get(url) ?? random;
    next.set(url, probeAt);
    return {
      updateOne: { filter: { _id, probeAt: NOT_SCHEDULED }, update: { $set: { probeAt } } },
    };
  });
  await collections.crawlers.bulkWrite(moves, { ordered: false });
}
