import { Binary } from 'mongodb';
import { chargedBytes } from '../../domain/quotas.ts';
import type { ScreenshotStore } from '../store.ts';
import type { AccountIncrements } from './account-increments.ts';
import type { Collections } from './collections.ts';

/** Screenshots, which are kept for an hour. */
export function createScreenshots(
  collections: Collections,
  accounts: AccountIncrements,
): ScreenshotStore {
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
      accounts.addStored(accountId, chargedBytes(size));
    },
    async get(id, now) {
      const document = await collections.screenshots.findOne({ _id: id, expiresAt: { $gt: now } });
      if (document === null) return undefined;
      return { contentType: document.contentType, bytes: document.bytes.value() };
    },
  };
}
