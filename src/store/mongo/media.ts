import { Binary } from 'mongodb';
import type { MediaStore } from '../store.ts';
import type { Collections } from './collections.ts';

/** Pictures that live for an hour. */
export function createMedia(c: Collections): MediaStore {
  return {
    async put(id, contentType, bytes, expiresAt) {
      await c.media.insertOne({ _id: id, contentType, bytes: new Binary(bytes), expiresAt });
    },
    async get(id, now) {
      const document = await c.media.findOne({ _id: id, expiresAt: { $gt: now } });
      if (document === null) return undefined;
      return { contentType: document.contentType, bytes: document.bytes.value() };
    },
  };
}
