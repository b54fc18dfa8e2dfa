import type { ScrapedPage } from './scraper.ts';

const EMAIL =
  /[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24}/g;
/** What looks like an address but is the name of a picture, as `logo@2x.png`. */
const FILE = /\.(png|jpe?g|gif|svg|webp|avif|ico|css|js)$/i;

/** Every distinct e-mail address in the page's text and `mailto:` links, in lower case, in order. */
export function emailExtractor(page: ScrapedPage) {
  const found = new Set<string>();
  const add = (text: string): void => {
    for (const [email] of text.matchAll(EMAIL)) {
      if (!FILE.test(email)) found.add(email.toLowerCase());
    }
  };
  for (const anchor of page.document.querySelectorAll('a[href^="mailto:" i]')) {
    add(decoded(anchor.getAttribute('href') ?? ''));
  }
  add(page.document.documentElement?.textContent ?? '');
  return { emails: [...found] };
}

function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    // A stray percent sign: the address is read as it stands.
    return href;
  }
}
