import { addressOf, jsonLdOf, metaOf, type ScrapedPage, textOf } from './scraper.ts';

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
 * What the page says of itself: title, description, canonical address, Open Graph, Twitter card,
 * JSON-LD.
 */
export function metadata(page: ScrapedPage) {
  const { document } = page;
  const canonical =
    document.querySelector('link[rel~="canonical" i]')?.getAttribute('href') ?? null;
  const icon = document.querySelector('link[rel~="icon" i]')?.getAttribute('href') ?? null;
  return {
    title: textOf(document.querySelector('title')) ?? metaOf(page, 'og:title') ?? null,
    description: metaOf(page, 'description', 'og:description') ?? null,
    keywords: (metaOf(page, 'keywords') ?? '')
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== ''),
    author: metaOf(page, 'author', 'article:author') ?? null,
    language: document.documentElement?.getAttribute('lang') ?? null,
    canonical: addressOf(page, canonical) ?? null,
    icon: addressOf(page, icon) ?? null,
    open_graph: prefixed(page, 'og:'),
    twitter: prefixed(page, 'twitter:'),
    json_ld: jsonLdOf(page),
  };
}
