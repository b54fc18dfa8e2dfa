import type { ScraperName } from '../../../domain/parameter-table.ts';
import { article, isArticle } from './article.ts';
import { emailExtractor } from './email-extractor.ts';
import { genericExtractor } from './generic-extractor.ts';
import { links } from './links.ts';
import { metadata } from './metadata.ts';
import { isProduct, product } from './product.ts';
import type { ScrapedPage, Scraper } from './scraper.ts';

/** Every scraper by its name. */
export const scrapers: Readonly<Record<ScraperName, Scraper>> = {
  'generic-extractor': genericExtractor,
  'email-extractor': emailExtractor,
  links,
  article,
  product,
  metadata,
};

/** The name of the scraper that fits what a page declares to be. */
export function scraperFor(page: ScrapedPage): ScraperName {
  if (isProduct(page)) return 'product';
  return isArticle(page) ? 'article' : 'generic-extractor';
}
