import { Readability } from '@mozilla/readability';
import { elementText, metaContent, type ScrapedPage } from './scrapers/scraper.ts';

/** Between the title of a page and the name of its site. */
const SEPARATOR = /^\s*[|–—·:»›/-]\s/;

/** The main content of a page, as {@link readMain} found it. */
export type MainContent = NonNullable<ReturnType<Readability<Element>['parse']>>;

/**
 * The main content of a page; undefined when none is found. Its title is the page's first heading
 * where the title of the document begins with that, and the heading is then not in the content.
 * Takes the document apart.
 */
export function readMain(page: ScrapedPage, keepClasses: boolean): MainContent | undefined {
  const { document } = page;
  const heading = document.querySelector('h1');
  const text = elementText(heading);
  const titles = [
    elementText(document.querySelector('title')),
    metaContent(page, 'og:title', 'twitter:title'),
  ];
  const isTitle = titles.some(
    (title) =>
      text !== undefined &&
      title?.startsWith(text) === true &&
      (title === text || SEPARATOR.test(title.slice(text.length))),
  );
  // Readability compares them by words of Latin letters, and would repeat any other.
  if (isTitle) heading?.remove();
  const main = new Readability(document, {
    keepClasses,
    serializer: (node) => node as Element,
  }).parse();
  if (main === null) return undefined;
  return isTitle && text !== undefined ? { ...main, title: text } : main;
}
