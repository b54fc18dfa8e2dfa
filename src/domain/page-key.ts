import { createHash } from 'node:crypto';
import type { CrawlRequest } from './job.ts';

/** Parameters that say nothing about the page that is stored. */
const OF_THE_REPLY: ReadonlySet<string> = new Set(['max_age', 'pretty', 'format']);

/**
 * What must be the same of two requests for one URL, for the stored page of one to serve the other:
 * empty for a plain GET. Undefined for requests whose page serves no other: POST and PUT, structured
 * data, screenshots and shared cookies.
 */
export function pageKey({ method, parameters }: CrawlRequest): string | undefined {
  const { scraper, autoparse, screenshot, cookies_session: jar, session, format } = parameters;
  const isOwn = scraper !== undefined || autoparse === true || screenshot === true;
  if (method !== 'GET' || isOwn || jar !== undefined || session !== undefined) return undefined;
  const relevant = Object.entries(parameters).filter(([name]) => !OF_THE_REPLY.has(name));
  // Storage keeps Markdown in place of the page.
  if (format === 'md') relevant.push(['format', format]);
  if (relevant.length === 0) return '';
  const text = JSON.stringify(relevant.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return createHash('sha256').update(text).digest('base64url');
}
