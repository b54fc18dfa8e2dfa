import { Binary } from 'mongodb';
import type { ScreenshotStore } from '../store.ts';
import type { Collections } from './collections.ts';

/** Screenshots, which are kept for an hour. */
export function createScreenshots(collections: Collections): ScreenshotStore {
  return {
    async put(id, contentType, bytes, expiresAt) {
      await collections.screenshots.insertOne({
        _id: id,
        contentType,
        bytes: new Binary(bytes),
        expiresAt,
      });
    },
    async get(id, now) {
      const document = await collections.screenshots.findOne({ _id: id, expiresAt: { $gt: now } });
      if (document === null) return undefined;
      return { contentType: document.contentType, bytes: document.bytes.value() };
    },
  };
}
