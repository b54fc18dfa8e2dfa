import {
  elementText,
  jsonLdObjects,
  metaContent,
  resolveAddress,
  type ScrapedPage,
} from './scraper.ts';

function prefixed(page: ScrapedPage, prefix: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const element of page.document.querySelectorAll('meta[property], meta[name]')) {
    const name = (
      element.getAttribute('property') ??
      element.getAttribute('name') ??
      ''
    ).toLowerCase();
    const content = element.getAttribute('content');
    if (name.startsWith(prefix) && content !== null) found[name.slice(prefix.length)] ??= content;
  }
  return found;
}

/**
 * What the page declares about itself: title, description, canonical address, Open Graph, Twitter
 * card and JSON-LD.
 */
export function metadata(page: ScrapedPage) {
  const { document } = page;
  const canonical =
    document.querySelector('link[rel~="canonical" i]')?.getAttribute('href') ?? null;
  const icon = document.querySelector('link[rel~="icon" i]')?.getAttribute('href') ?? null;
  return {
    title: elementText(document.querySelector('title')) ?? metaContent(page, 'og:title') ?? null,
    description: metaContent(page, 'description', 'og:description') ?? null,
    keywords: (metaContent(page, 'keywords') ?? '')
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== ''),
    author: metaContent(page, 'author', 'article:author') ?? null,
    language: document.documentElement?.getAttribute('lang') ?? null,
    canonical: resolveAddress(page, canonical) ?? null,
    icon: resolveAddress(page, icon) ?? null,
    open_graph: prefixed(page, 'og:'),
    twitter: prefixed(page, 'twitter:'),
    json_ld: jsonLdObjects(page),
  };
}
