import type { AdapterFactory } from '../adapter.ts';
import { referencePage } from '../reference/reference-page.ts';
import { openApi } from './about.ts';
import { pushOrCrawl } from './push-or-crawl.ts';
import { scraper } from './scraper.ts';
import { storage } from './storage.ts';

/**
 * The documented REST shapes that google.api.http rules cannot express. `publicUrl` returns the
 * address of the service.
 */
export function compatAdapters(publicUrl: () => string): AdapterFactory {
  return (toolkit) => [
    ...pushOrCrawl(toolkit),
    ...storage(toolkit),
    ...scraper(toolkit),
    openApi(publicUrl),
    ...referencePage(),
  ];
}
