import { links } from './links.ts';
import { metadata } from './metadata.ts';
import { elementText, imageAddress, type ScrapedPage } from './scraper.ts';

const MAX_TABLES = 50;
/** What has text that browsers do not show. */
const UNSEEN = 'script, style, noscript, template, svg, video, audio, canvas, annotation';

/** What every page may have: metadata, text, headings, links, images and tables. */
export function genericExtractor(page: ScrapedPage) {
  const { document } = page;
  const facts = metadata(page);
  const found = links(page);
  const images = new Map<string, { url: string; alt: string }>();
  for (const image of document.querySelectorAll('img')) {
    const url = imageAddress(page, image);
    if (url !== undefined && !images.has(url)) {
      images.set(url, { url, alt: image.getAttribute('alt') ?? '' });
    }
  }
  const headings = [...document.querySelectorAll('h1, h2, h3')].flatMap((heading) => {
    const text = elementText(heading);
    return text === undefined ? [] : [{ level: Number(heading.tagName.slice(1)), text }];
  });
  const tables = [...document.querySelectorAll('table')].slice(0, MAX_TABLES).map(tableCells);
  for (const unseen of document.querySelectorAll(UNSEEN)) unseen.remove();
  return {
    ...facts,
    headings,
    text: elementText(document.body) ?? '',
    ...found,
    images: [...images.values()],
    tables,
  };
}

/** The texts of a table's cells by row; without those of tables inside its cells. */
function tableCells(table: Element): string[][] {
  return [...table.querySelectorAll('tr')]
    .filter((row) => row.closest('table') === table)
    .map((row) =>
      [...row.children]
        .filter((cell) => /^t[hd]$/i.test(cell.tagName))
        .map((cell) => elementText(cell) ?? ''),
    );
}
