import { elementText, type ScrapedPage } from './scraper.ts';

const LOCAL = /[A-Za-z0-9._%+-]/;
const DOMAIN_CHARACTER = /[A-Za-z0-9.-]/;
const DOMAIN = /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24}/;
const MAX_LOCAL = 64;
const MAX_DOMAIN = 253;
/** Names of files that look like addresses, such as `logo@2x.png`. */
const FILE = /\.(png|jpe?g|gif|svg|webp|avif|ico|css|js)$/i;

/**
 * Every distinct e-mail address in the page's text and `mailto:` links, in lower case, in order.
 */
export function emailExtractor(page: ScrapedPage) {
  const found = new Set<string>();
  const add = (text: string): void => {
    for (const email of emailsIn(text)) {
      if (!FILE.test(email)) found.add(email.toLowerCase());
    }
  };
  for (const anchor of page.document.querySelectorAll('a[href^="mailto:" i]')) {
    add(decoded(anchor.getAttribute('href') ?? ''));
  }
  // Without spaces between blocks, the end of one would become part of an address in the next.
  add(elementText(page.document.documentElement) ?? '');
  return { emails: [...found] };
}

/** Searches from each `@` outwards, no further than the longest address: linear in the text. */
function* emailsIn(text: string): Generator<string> {
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    let start = at;
    while (start > 0 && at - start < MAX_LOCAL && LOCAL.test(text[start - 1] ?? '')) start -= 1;
    let end = at + 1;
    while (end - at <= MAX_DOMAIN && DOMAIN_CHARACTER.test(text[end] ?? '')) end += 1;
    const domain = start === at ? undefined : DOMAIN.exec(text.slice(at + 1, end))?.[0];
    if (domain !== undefined) yield `${text.slice(start, at)}@${domain}`;
  }
}

function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    // A percent sign that begins no escape: the address is used as it is.
    return href;
  }
}
