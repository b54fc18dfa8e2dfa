import { readMain } from '../readable.ts';
import {
  blockLines,
  hasSchemaType,
  jsonLdObjects,
  metaContent,
  resolveAddress,
  type ScrapedPage,
} from './scraper.ts';

const TYPES = [
  'Article',
  'NewsArticle',
  'BlogPosting',
  'Report',
  'TechArticle',
  'ScholarlyArticle',
];

/** Whether the page says that it is an article. */
export function isArticle(page: ScrapedPage): boolean {
  if (metaContent(page, 'og:type')?.toLowerCase() === 'article') return true;
  return jsonLdObjects(page).some((object) => hasSchemaType(object, ...TYPES));
}

/**
 * The page's main content and what is known of it; `content` is empty when no main content was
 * found.
 */
export function article(page: ScrapedPage) {
  const object = jsonLdObjects(page).find((each) => hasSchemaType(each, ...TYPES));
  const published = metaContent(page, 'article:published_time', 'date') ?? object?.datePublished;
  // Readability takes the document apart, so it comes last.
  const readable = readMain(page, false);
  const main = readable?.content ?? null;
  if (main !== null) completeAddresses(page, main);
  const html = main?.innerHTML ?? '';
  const text = blockLines(main);
  return {
    title: readable?.title || null,
    byline: readable?.byline ?? metaContent(page, 'author') ?? null,
    published_at: typeof published === 'string' ? published : (readable?.publishedTime ?? null),
    site_name: readable?.siteName ?? null,
    language: readable?.lang ?? null,
    excerpt: readable?.excerpt ?? null,
    content: text,
    html,
    length: text.length,
  };
}

/** Makes the addresses of links and pictures absolute: the content is shown elsewhere. */
function completeAddresses(page: ScrapedPage, main: Element): void {
  const complete = (text: string): string => resolveAddress(page, text) ?? text;
  for (const name of ['href', 'src', 'poster']) {
    for (const element of main.querySelectorAll(`[${name}]`)) {
      element.setAttribute(name, complete(element.getAttribute(name) ?? ''));
    }
  }
  for (const element of main.querySelectorAll('[srcset]')) {
    const candidates = (element.getAttribute('srcset') ?? '').split(/,\s/);
    const completed = candidates.map((each) => each.trim().replace(/^\S+/, complete));
    element.setAttribute('srcset', completed.join(', '));
  }
}
