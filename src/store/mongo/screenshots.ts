import { Binary } from 'mongodb';
import { chargedBytes } from '../../domain/quotas.ts';
import type { ScreenshotStore } from '../store.ts';
import type { Collections } from './collections.ts';
import type { Removed } from './expiry.ts';

/** Screenshots, which are kept for an hour. */
export function createScreenshots(collections: Collections): ScreenshotStore {
  return {
    async put({ id, accountId, contentType, bytes, expiresAt }) {
      const size = bytes.byteLength;
      await collections.screenshots.insertOne({
        _id: id,
        accountId,
        contentType,
        bytes: new Binary(bytes),
        size,
        expiresAt,
      });
      await countStored(collections, accountId, chargedBytes(size));
    },
    async get(id, now) {
      const document = await collections.screenshots.findOne({ _id: id, expiresAt: { $gt: now } });
      if (document === null) return undefined;
      return { contentType: document.contentType, bytes: document.bytes.value() };
    },
  };
}

/** Removes at most `batch` expired screenshots, and subtracts them from their accounts' storage. */
export async function expireScreenshots(
  collections: Collections,
  now: Date,
  batch: number,
): Promise<Removed> {
  const old = await collections.screenshots
    .find({ expiresAt: { $lte: now } }, { projection: { accountId: 1, size: 1 } })
    .limit(batch)
    .toArray();
  if (old.length === 0) return { found: 0, count: 0 };
  const { deletedCount } = await collections.screenshots.deleteMany({
    _id: { $in: old.map(({ _id }) => _id) },
  });
  // Otherwise another process has removed and counted some of them; `measureStored` corrects that.
  if (deletedCount === old.length) {
    for (const [accountId, gone] of Map.groupBy(old, (each) => each.accountId)) {
      const bytes = gone.reduce((sum, { size }) => sum + chargedBytes(size), 0);
      await countStored(collections, accountId, -bytes);
    }
  }
  return { found: old.length, count: deletedCount };
}

async function countStored(
  { accounts }: Collections,
  accountId: string,
  storedBytes: number,
): Promise<void> {
  await accounts.updateOne({ _id: accountId }, { $inc: { storedBytes } });
}
