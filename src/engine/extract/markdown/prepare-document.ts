import {
  elementText,
  imageAddress,
  resolveAddress,
  type ScrapedPage,
} from '../scrapers/scraper.ts';

const HEADINGS = 'h1, h2, h3, h4, h5, h6';
const BLOCKS = `${HEADINGS}, address, article, div, dl, figure, li, p, pre, section, table, ul, ol`;
/** What a link beside a heading shows when it only links to the heading. */
const PERMALINK = /^[#¶§🔗]$/u;

/**
 * Changes what Markdown has no form for: addresses become absolute, links around blocks become
 * links of their titles, line breaks in headings become spaces.
 */
export function prepareDocument(page: ScrapedPage): void {
  const { document } = page;
  // React sends parts of a page hidden, under such names, and shows them by a script.
  for (const unseen of document.querySelectorAll('[hidden]')) {
    if (unseen.getAttribute('id')?.startsWith('S:') !== true) unseen.remove();
  }
  for (const image of document.querySelectorAll('img')) {
    image.setAttribute('src', imageAddress(page, image) ?? '');
  }
  for (const heading of document.querySelectorAll(HEADINGS)) prepareHeading(heading);
  for (const link of document.querySelectorAll('a[href]')) prepareLink(page, link);
  for (const end of document.querySelectorAll('pre br')) end.replaceWith('\n');
}

function prepareHeading(heading: Element): void {
  for (const end of heading.querySelectorAll('br')) end.replaceWith(' ');
  for (const link of heading.querySelectorAll('a[href]')) {
    if (PERMALINK.test(elementText(link) ?? '')) link.remove();
  }
}

function prepareLink(page: ScrapedPage, link: Element): void {
  const href = link.getAttribute('href')?.trim() ?? '';
  const address = /^(mailto|tel):/i.test(href) ? href : resolveAddress(page, href);
  if (address === undefined) {
    link.replaceWith(...link.childNodes);
    return;
  }
  link.setAttribute('href', address);
  if (link.querySelector(BLOCKS) === null) return;
  const heading = link.querySelector(HEADINGS);
  if (heading === null) {
    // Without a title, all of it becomes one line.
    for (const block of link.querySelectorAll(BLOCKS)) block.replaceWith(' ', ...block.childNodes);
    return;
  }
  const inner = page.document.createElement('a');
  inner.setAttribute('href', address);
  inner.append(...heading.childNodes);
  heading.append(inner);
  const outer = page.document.createElement('div');
  outer.append(...link.childNodes);
  link.replaceWith(outer);
}
