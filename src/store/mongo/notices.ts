import { EPISODE_GAP_MS } from '../rules.ts';
import type { NoticeStore } from '../store.ts';
import type { Collections } from './collections.ts';
import type { Lanes } from './lanes.ts';

/** Notices to owners of accounts that are not sent yet. */
export function createNotices(
  collections: Collections,
  lanes: Pick<Lanes, 'newWriteId'>,
): NoticeStore {
  return {
    async add({ noticeId, ...notice }) {
      await collections.notices.updateOne(
        { _id: noticeId },
        { $setOnInsert: { ...notice, claim: '' } },
        { upsert: true },
      );
    },

    async claim(now, leaseMs, limit) {
      const due = await collections.notices
        .find({ dueAt: { $lte: now } }, { projection: { _id: 1 } })
        .sort({ dueAt: 1, _id: 1 })
        .limit(limit)
        .toArray();
      if (due.length === 0) return [];
      const ids = due.map((each) => each._id);
      const claim = lanes.newWriteId();
      await collections.notices.updateMany(
        { _id: { $in: ids }, dueAt: { $lte: now } },
        { $set: { dueAt: new Date(now.getTime() + leaseMs), claim }, $inc: { attempts: 1 } },
      );
      const claimed = await collections.notices.find({ _id: { $in: ids }, claim }).toArray();
      return claimed.map(({ _id, claim: _claim, ...notice }) => ({ noticeId: _id, ...notice }));
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
