import type { CrawlParameters } from '../../domain/parameters.ts';
import type { CrawlTask } from '../engine.ts';

/** Parameters that act on what was captured, or only wait: they leave nothing in a page. */
const AFTERWARDS: ReadonlySet<string> = new Set<keyof CrawlParameters>([
  'format',
  'md_readability',
  'pretty',
  'get_headers',
  'scraper',
  'autoparse',
  'custom_success_codes',
  'page_wait',
  'wait_for_selector',
  'include_frames',
]);
/** Parameters that a page is set up with. */
const SET_UP: ReadonlySet<string> = new Set<keyof CrawlParameters>([
  'user_agent',
  'device',
  'width',
  'height',
  'ajax_wait',
  'get_cookies',
  'block_resources',
  'country',
  'locale',
  'timezone',
  'tor_network',
  'proxy',
]);

/**
 * Names the pages that a crawl may share with others, one after the other. They are those of the
 * same crawler (or of an account's inline crawls) for the same origin, by the same way out, set up
 * in the same way. Undefined for a crawl that needs a page of its own, because it brings cookies or
 * headers, or acts like a user. Any parameter that is not listed here counts as such.
 */
export function pageKind(task: CrawlTask, start: URL): string | undefined {
  if (start.username !== '' || start.password !== '') return undefined;
  const setUp: [string, unknown][] = [];
  for (const [name, value] of Object.entries(task.request.parameters)) {
    if (value === undefined || value === false || AFTERWARDS.has(name)) continue;
    if (!SET_UP.has(name)) return undefined;
    setUp.push([name, value]);
  }
  return JSON.stringify([
    task.accountId,
    task.crawlerId ?? null,
    task.proxy ?? null,
    start.origin,
    setUp.toSorted(([left], [right]) => (left < right ? -1 : 1)),
  ]);
}
