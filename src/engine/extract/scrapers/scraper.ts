/** A parsed page, as scrapers see it. */
export interface ScrapedPage {
  readonly document: Document;
  /**
   * Address of the page; relative links are resolved against it, or against the page's own base.
   */
  readonly url: string;
}

/**
 * Takes structured data from a page. Returns a JSON value; absent facts are null or empty, never
 * made up.
 */
export type Scraper = (page: ScrapedPage) => unknown;

/** The text of an element in one line, undefined when there is none. */
export function textOf(element: Element | null | undefined): string | undefined {
  const text = element?.textContent?.replace(/\s+/g, ' ').trim();
  return text === undefined || text === '' ? undefined : text;
}

const BLOCKS =
  'address, article, aside, blockquote, br, dd, div, dl, dt, figcaption, figure, footer, form, h1, h2, h3, h4, h5, h6, header, hr, li, main, nav, ol, option, p, pre, section, table, td, th, tr, ul';

/** What stands apart though it is no block: a title, a control, or what is not shown. */
const APART =
  'title, body, script, style, noscript, template, button, label, select, textarea, iframe';

/**
 * The text of an element in one line, with a space where a block begins or ends. Changes the
 * document.
 */
export function blockTextOf(element: Element | null): string {
  for (const block of element?.querySelectorAll(`${BLOCKS}, ${APART}`) ?? []) {
    block.before(' ');
    block.after(' ');
  }
  return textOf(element) ?? '';
}

/**
 * Looked for once in each document: on a page of many links that have to be resolved, each search
 * walks the whole page.
 */
const bases = new WeakMap<Document, URL | null>();

function baseOf({ document, url }: ScrapedPage): URL | null {
  const known = bases.get(document);
  if (known !== undefined) return known;
  const base = document.querySelector('base[href]')?.getAttribute('href') ?? '';
  const found = URL.parse(base, url) ?? URL.parse(url);
  bases.set(document, found);
  return found;
}

/** The absolute http(s) address of a link; undefined for others and for what is no address. */
export function addressOf(page: ScrapedPage, href: string | null): string | undefined {
  if (href === null) return undefined;
  const from = baseOf(page);
  const url = from === null ? null : URL.parse(href.trim(), from);
  return url !== null && /^https?:$/.test(url.protocol) ? url.href : undefined;
}

/** The content of the first `<meta>` whose name or property is one of these. */
export function metaOf(page: ScrapedPage, ...names: string[]): string | undefined {
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
 * Every JSON-LD object of the page, `@graph`s unfolded; blocks that are no JSON are passed over.
 */
export function jsonLdOf(page: ScrapedPage): Record<string, unknown>[] {
  const found: Record<string, unknown>[] = [];
  for (const script of page.document.querySelectorAll('script[type="application/ld+json"]')) {
    try {
      collect(JSON.parse(script.textContent ?? ''), found);
    } catch {
      // Pages in the wild have broken blocks; the others still count.
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
export function isOfType(object: Record<string, unknown>, ...types: string[]): boolean {
  const own = object['@type'];
  const all = (Array.isArray(own) ? own : [own]).map((each) => String(each).replace(/^.*[/:]/, ''));
  return all.some((each) => types.includes(each));
}
