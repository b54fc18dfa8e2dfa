import type { AdapterFactory } from '../adapter.ts';
import { pushOrCrawl } from './push-or-crawl.ts';
import { storage } from './storage.ts';

/** The documented REST shapes that go beyond google.api.http rules. */
export const documentedAdapters: AdapterFactory = (parts) => [
  ...pushOrCrawl(parts),
  ...storage(parts),
];
