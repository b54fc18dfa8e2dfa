import {
  elementText,
  imageAddress,
  resolveAddress,
  type ScrapedPage,
} from '../scrapers/scraper.ts';
import { keepParts, removeHidden } from './keep-parts.ts';

const HEADING = /^h[1-6]$/;
const BLOCK = /^(h[1-6]|address|article|div|dl|figure|li|p|pre|section|table|ul|ol)$/;
/** Edit links of MediaWiki, and what KaTeX draws of a formula that MathML has, too. */
const UNREAD = '.mw-editsection, .katex-mathml + .katex-html';
/** What a link next to a heading shows when it only links to the heading. */
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
  keepParts(document);
  removeHidden(document);
  for (const unread of document.querySelectorAll(UNREAD)) unread.remove();
  for (const image of document.querySelectorAll('img')) {
    image.setAttribute('src', imageAddress(page, image) ?? '');
  }
  const { lineBreaks, links } = findParts(document.body);
  for (const lineBreak of lineBreaks) lineBreak.replaceWith(' ');
  for (const link of links) prepareLink(page, link);
  for (const end of document.querySelectorAll('pre br')) end.replaceWith('\n');
}

interface Link {
  readonly element: Element;
  readonly isInHeading: boolean;
  /** The elements in it that are no part of a line. */
  readonly blocks: Element[];
  hasLinks: boolean;
}

interface Parts {
  /** Those in headings. */
  readonly lineBreaks: Element[];
  readonly links: Link[];
}

interface Place {
  readonly link: Link | undefined;
  readonly isInHeading: boolean;
}

/**
 * Finds all parts in one walk, because headings and links can be nested hundreds of times around
 * the whole page. A block is a part of the innermost link.
 */
function findParts(body: Element): Parts {
  const parts: Parts = { lineBreaks: [], links: [] };
  const open: (readonly [Element, Place])[] = [[body, { link: undefined, isInHeading: false }]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [element, place] = next;
    const inside = enter(element, place, parts);
    for (const child of [...element.children].reverse()) open.push([child, inside]);
  }
  return parts;
}

/** Notes an element; returns the place of its children. */
function enter(element: Element, place: Place, { lineBreaks, links }: Parts): Place {
  const { link, isInHeading } = place;
  const { localName } = element;
  if (localName === 'a' && element.hasAttribute('href')) {
    const found: Link = { element, isInHeading, blocks: [], hasLinks: false };
    links.push(found);
    if (link !== undefined) link.hasLinks = true;
    return { link: found, isInHeading };
  }
  if (localName === 'br' && isInHeading) lineBreaks.push(element);
  if (BLOCK.test(localName)) link?.blocks.push(element);
  return HEADING.test(localName) ? { link, isInHeading: true } : place;
}

/** Whether the link is next to the text of a heading, and only leads to the heading. */
function isPermalink({ element, isInHeading, blocks, hasLinks }: Link): boolean {
  // The text of a link is only read when it is not that of other links, too.
  const isSmall = isInHeading && !hasLinks && blocks.length === 0;
  return isSmall && PERMALINK.test(elementText(element) ?? '');
}

function prepareLink(page: ScrapedPage, found: Link): void {
  const { element: link, blocks } = found;
  if (isPermalink(found)) {
    link.remove();
    return;
  }
  const href = link.getAttribute('href')?.trim() ?? '';
  const address = /^(mailto|tel):/i.test(href) ? href : resolveAddress(page, href);
  if (address === undefined) {
    link.replaceWith(...link.childNodes);
    return;
  }
  link.setAttribute('href', address);
  if (blocks.length === 0) return;
  const heading = blocks.find(({ localName }) => HEADING.test(localName));
  if (heading === undefined) {
    // Without a title, all of it becomes one line.
    for (const block of blocks) block.replaceWith(' ', ...block.childNodes);
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
