import { SaxesParser } from 'saxes';

/** One entry of a sitemap. */
export interface SitemapEntry {
  readonly url: string;
  /** When it was last changed, if the sitemap says so. */
  readonly lastmod: Date | undefined;
  /** Whether it is another sitemap. */
  readonly isSitemap: boolean;
}

/** Longer addresses cannot be pushed. */
const MAX_URL = 8_192;
/** Roots of sitemaps, which may be empty. */
const ROOTS: readonly string[] = ['urlset', 'sitemapindex'];
const MAX_DATE = 64;
/** Elements within each other. A sitemap needs three, and its extensions a few more. */
const MAX_DEPTH = 32;
/** Characters of one tag, text or comment. The parser keeps all of it until its end. */
const MAX_TOKEN = 1024 * 1024;

/**
 * Reads a sitemap, or an index of sitemaps, piece by piece; or a plain text with a URL a line. Throws an
 * Error for XML that is not well-formed, that nests deeper than {@link MAX_DEPTH}, or that has a longer tag,
 * text or comment than {@link MAX_TOKEN}. `end` throws one for XML that has neither an entry nor a root of
 * {@link ROOTS}, and for a text that is not empty and has no URL.
 */
export function createSitemapParser(isXml: boolean): {
  /** Returns the entries that end in this piece. */
  write(text: string): SitemapEntry[];
  /** Returns the last entries. */
  end(): SitemapEntry[];
} {
  return isXml ? xmlParser() : lineParser();
}

function toEntry(loc: string, lastmod: string, isSitemap: boolean): SitemapEntry[] {
  const url = loc.trim();
  const isUrl = url.length <= MAX_URL && /^https?:/i.test(url) && URL.canParse(url);
  if (!isUrl) return [];
  const at = new Date(lastmod.trim());
  return [{ url: copied(url), lastmod: Number.isNaN(at.getTime()) ? undefined : at, isSitemap }];
}

/** The same text. A part of a text keeps the whole one in memory, here the piece it was read from. */
function copied(text: string): string {
  return Buffer.from(text).toString();
}

function xmlParser() {
  const parser = new SaxesParser();
  let found: SitemapEntry[] = [];
  const path: string[] = [];
  /** Whether it has the root of a sitemap, or an entry. */
  let isSitemap = false;
  let loc = '';
  let lastmod = '';
  /** Since the last tag, text or comment ended. */
  let unfinished = 0;
  const onToken = (): void => {
    unfinished = 0;
  };
  for (const event of ['comment', 'doctype', 'processinginstruction'] as const) {
    parser.on(event, onToken);
  }
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name }) => {
    onToken();
    const depth = path.push(localName(name));
    if (depth > MAX_DEPTH) throw new Error('the elements nest too deep');
    if (depth === 1) isSitemap = ROOTS.includes(localName(name));
    if (['url', 'sitemap'].includes(path.at(-1) ?? '')) {
      loc = '';
      lastmod = '';
    }
  });
  const onText = (text: string): void => {
    onToken();
    const isOfEntry = ['url', 'sitemap'].includes(path.at(-2) ?? '');
    if (!isOfEntry) return;
    // One character more than allowed, so that a cut one is not taken for a whole one.
    if (path.at(-1) === 'loc') loc = (loc + text).slice(0, MAX_URL + 1);
    if (path.at(-1) === 'lastmod') lastmod = (lastmod + text).slice(0, MAX_DATE);
  };
  parser.on('text', onText);
  parser.on('cdata', onText);
  parser.on('closetag', ({ name }) => {
    onToken();
    const element = localName(name);
    path.pop();
    if (element === 'url' || element === 'sitemap') {
      found.push(...toEntry(loc, lastmod, element === 'sitemap'));
      isSitemap ||= found.length > 0;
    }
  });
  const take = (): SitemapEntry[] => {
    const entries = found;
    found = [];
    return entries;
  };
  return {
    write(text: string) {
      unfinished += text.length;
      if (unfinished > MAX_TOKEN) throw new Error('a tag, text or comment is too long');
      parser.write(text);
      return take();
    },
    end() {
      parser.close();
      if (!isSitemap) throw new Error('it has neither the root nor an entry of a sitemap');
      return take();
    },
  };
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1).toLowerCase();
}

function lineParser() {
  let rest = '';
  let hasText = false;
  let hasUrl = false;
  const ofLines = (lines: readonly string[]) => {
    const entries = lines.flatMap((line) => toEntry(line, '', false));
    hasText ||= lines.some((line) => line.trim() !== '');
    hasUrl ||= entries.length > 0;
    return entries;
  };
  return {
    write(text: string) {
      const lines = (rest + text).split('\n');
      rest = (lines.pop() ?? '').slice(0, MAX_URL + 1);
      return ofLines(lines);
    },
    end() {
      const entries = ofLines([rest]);
      if (hasText && !hasUrl) throw new Error('it has no URL');
      return entries;
    },
  };
}
