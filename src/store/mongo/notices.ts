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
  };
}
