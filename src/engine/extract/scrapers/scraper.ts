import { getOrInsert } from '../../../domain/get-or-insert.ts';
import { parseHttpUrl } from '../../../domain/target-url.ts';

/** A parsed page. */
export interface ScrapedPage {
  readonly document: Document;
  /** Relative links are resolved against this address, or against the `base` of the page. */
  readonly url: string;
}

/**
 * Extracts structured data from a page. Returns a JSON value in which missing facts are null or
 * empty.
 */
export type Scraper = (page: ScrapedPage) => unknown;

const BLOCKS =
  'address article aside blockquote br dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol option p pre section table td th tr ul';

/**
 * Elements whose text is separate although they are not blocks: titles, controls, and what is not
 * shown.
 */
const APART =
  'title body script style noscript template button label select textarea iframe svg summary';

const SEPARATE = new Set(`${BLOCKS} ${APART}`.toUpperCase().split(' '));

/**
 * The text of an element in one line, with a space where a block begins or ends; undefined when it
 * has none.
 */
export function elementText(element: Element | null | undefined): string | undefined {
  const text = separated(element ?? null, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return text === '' ? undefined : text;
}

/** The text of an element with a line for each block and for each line of code. */
export function blockLines(element: Element | null): string {
  // The newlines of the source are spaces; those of blocks are not.
  return separated(element, BREAK)
    .replace(/[^\S\u2029]+/g, ' ')
    .replace(/ ?\u2029[ \u2029]*/g, '\n')
    .trim();
}

/** The paragraph separator of Unicode, which pages do not use. */
const BREAK = '\u2029';

function separated(element: Element | null, mark: string): string {
  const parts: string[] = [];
  const add = (node: Node, isCode: boolean): void => {
    for (const child of node.childNodes) {
      if (child.nodeType === TEXT_NODE) {
        const text = child.nodeValue ?? '';
        parts.push(isCode ? text.replaceAll('\n', mark) : text);
      } else if (child.nodeType === ELEMENT_NODE) {
        const name = child.nodeName.toUpperCase();
        const isApart = SEPARATE.has(name);
        if (isApart) parts.push(mark);
        add(child, isCode || name === 'PRE');
        if (isApart) parts.push(mark);
      }
    }
  };
  if (element !== null) add(element, element.nodeName === 'PRE');
  return parts.join('');
}

const ELEMENT_NODE = 1;
const TEXT_NODE = 3;

/**
 * Cached for each document: a search walks the whole page, and a page has many links to resolve.
 */
const bases = new WeakMap<Document, URL | null>();

function baseAddress({ document, url }: ScrapedPage): URL | null {
  return getOrInsert(bases, document, () => {
    const base = document.querySelector('base[href]')?.getAttribute('href') ?? '';
    return URL.parse(base, url) ?? URL.parse(url);
  });
}

/** The absolute address of an http or https link; undefined for any other. */
export function resolveAddress(page: ScrapedPage, href: string | null): string | undefined {
  if (href === null) return undefined;
  const from = baseAddress(page);
  return from === null ? undefined : parseHttpUrl(href.trim(), from)?.href;
}

/** Where pages keep the address of an image that is loaded when it comes into view. */
const IMAGE_ATTRIBUTES = ['src', 'data-src', 'data-lazy-src', 'data-original'];

/** The absolute address of an image; undefined without one, or with its data in the page. */
export function imageAddress(page: ScrapedPage, image: Element): string | undefined {
  return (
    IMAGE_ATTRIBUTES.map((name) => resolveAddress(page, image.getAttribute(name))).find(
      (address) => address !== undefined,
    ) ?? resolveAddress(page, largestSource(image))
  );
}

/** Commas end a candidate before white space or after its size; within an address they are part of it. */
const BETWEEN_CANDIDATES = /,\s+|(?<=\s[\d.]+[wx]),/;

/** The largest candidate of the `srcset` of an image, or of a source of its `picture`. */
function largestSource(image: Element): string | null {
  const { parentElement: parent } = image;
  const sources = parent?.localName === 'picture' ? [...parent.children] : [];
  for (const element of [image, ...sources]) {
    const set = element.getAttribute('srcset') ?? element.getAttribute('data-srcset');
    const candidates = (set ?? '').split(BETWEEN_CANDIDATES).map((text) => {
      const [address = '', size = '1x'] = text.trim().split(/\s+/, 2);
      return { address, size: Number.parseFloat(size) };
    });
    const [largest] = candidates.toSorted((one, other) => other.size - one.size);
    if (largest !== undefined && largest.address !== '') return largest.address;
  }
  return null;
}

/**
 * The content of the first `<meta>` with one of these names or properties; undefined without one.
 */
export function metaContent(page: ScrapedPage, ...names: string[]): string | undefined {
  for (const name of names) {
    const element = page.document.querySelector(
      `meta[name="${name}" i], meta[property="${name}" i]`,
    );
    const content = element?.getAttribute('content')?.trim();
    if (content !== undefined && content !== '') return content;
  }
  return undefined;
}

/**
 * Every JSON-LD object of the page, including those inside `@graph`. Blocks that are not JSON are
 * skipped.
 */
export function jsonLdObjects(page: ScrapedPage): Record<string, unknown>[] {
  const found: Record<string, unknown>[] = [];
  for (const script of page.document.querySelectorAll('script[type="application/ld+json"]')) {
    try {
      collect(JSON.parse(script.textContent ?? ''), found);
    } catch {
      // Real pages have broken blocks; their other blocks still count.
    }
  }
  return found;
}

function collect(value: unknown, into: Record<string, unknown>[]): void {
  if (Array.isArray(value)) {
    for (const each of value) collect(each, into);
  } else if (typeof value === 'object' && value !== null) {
    const object = value as Record<string, unknown>;
    if ('@graph' in object) collect(object['@graph'], into);
    else into.push(object);
  }
}

/** Whether a JSON-LD object is of one of these schema.org types. */
export function hasSchemaType(object: Record<string, unknown>, ...types: string[]): boolean {
  const own = object['@type'];
  const all = (Array.isArray(own) ? own : [own]).map((each) => String(each).replace(/^.*[/:]/, ''));
  return all.some((each) => types.includes(each));
}
