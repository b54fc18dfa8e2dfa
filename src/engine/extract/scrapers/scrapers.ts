import { article, isArticle } from './article.ts';
import { emailExtractor } from './email-extractor.ts';
import { genericExtractor } from './generic-extractor.ts';
import { links } from './links.ts';
import { metadata } from './metadata.ts';
import { isProduct, product } from './product.ts';
import type { ScrapedPage, Scraper } from './scraper.ts';

/** Every scraper by the name that `scraper` takes; the names are `SCRAPER_NAMES`. */
export const scrapers: Readonly<Record<string, Scraper>> = {
  'generic-extractor': genericExtractor,
  'email-extractor': emailExtractor,
  links,
  article,
  product,
  metadata,
};

/** The name of the scraper that fits what a page declares to be. */
export function scraperFor(page: ScrapedPage): string {
  if (isProduct(page)) return 'product';
  return isArticle(page) ? 'article' : 'generic-extractor';
}
