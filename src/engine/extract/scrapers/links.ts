import { elementText, resolveAddress, type ScrapedPage } from './scraper.ts';

/**
 * Every distinct link of the page with its text, in order; `internal` when it stays on the page's
 * host.
 */
export function links(page: ScrapedPage) {
  const host = URL.parse(page.url)?.host;
  const found = new Map<string, { url: string; text: string; internal: boolean }>();
  for (const anchor of page.document.querySelectorAll('a[href], area[href]')) {
    const url = resolveAddress(page, anchor.getAttribute('href'));
    if (url === undefined || found.has(url)) continue;
    const internal = URL.parse(url)?.host === host;
    found.set(url, { url, text: elementText(anchor) ?? '', internal });
  }
  return { links: [...found.values()] };
}
