import type { QueuedNotice } from '../../domain/notice.ts';
import { EPISODE_GAP_MS } from '../rules.ts';
import type { NoticeStore } from '../store.ts';
import type { Collections } from './collections.ts';

/** Notices to owners of accounts that are not sent yet. */
export function createNotices(collections: Pick<Collections, 'notices' | 'episodes'>): NoticeStore {
  return {
    async add({ noticeId, ...notice }) {
      await collections.notices.updateOne(
        { _id: noticeId },
        { $setOnInsert: notice },
        { upsert: true },
      );
    },

    async claim(now, leaseMs, limit) {
      const dueAt = new Date(now.getTime() + leaseMs);
      const claimed: QueuedNotice[] = [];
      while (claimed.length < limit) {
        const next = await collections.notices.findOneAndUpdate(
          { dueAt: { $lte: now } },
          { $set: { dueAt }, $inc: { attempts: 1 } },
          // Notices of an older program have the name of their claim.
          { sort: { dueAt: 1, _id: 1 }, returnDocument: 'after', projection: { claim: 0 } },
        );
        if (next === null) break;
        const { _id: noticeId, ...notice } = next;
        claimed.push({ noticeId, ...notice });
      }
      return claimed;
    },

    async remove(noticeIds) {
      await collections.notices.deleteMany({ _id: { $in: [...noticeIds] } });
    },

    async postpone(noticeIds, dueAt) {
      await collections.notices.updateMany({ _id: { $in: [...noticeIds] } }, { $set: { dueAt } });
    },

    async lasting(keys, now) {
      if (keys.length === 0) return [];
      const found = await collections.episodes.find({ _id: { $in: [...keys] } }).toArray();
      const known = new Map(found.map((each) => [each._id, each]));
      const episodes = keys.map((key) => {
        const before = known.get(key);
        const gapMs = EPISODE_GAP_MS[before?.told === true ? 'told' : 'untold'];
        const goesOn = before !== undefined && now.getTime() - before.seenAt.getTime() <= gapMs;
        return { key, since: goesOn ? before.since : now, told: goesOn && before.told };
      });
      await collections.episodes.bulkWrite(
        episodes.map(({ key, since, told }) => ({
          updateOne: {
            filter: { _id: key },
            update: { $set: { since, told, seenAt: now } },
            upsert: true,
          },
        })),
      );
      return episodes;
    },

    async told(keys) {
      await collections.episodes.updateMany({ _id: { $in: [...keys] } }, { $set: { told: true } });
    },
  };
}
