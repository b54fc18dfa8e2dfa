/** Whose each page of the console is, by its path below `/console`; `:` begins what varies. */
export const PAGES = {
  '/crawlers': 'account',
  // No crawler's name begins with a plus.
  '/crawlers/+new': 'account',
  '/crawlers/:name': 'account',
  '/crawlers/:name/:tab': 'account',
  '/crawl': 'account',
  '/storage': 'account',
  '/find': 'account',
  '/jobs/:rid': 'account',
  '/account': 'account',
  '/proxies': 'account',
  '/accounts': 'operator',
  '/system': 'operator',
  '/setup': 'operator',
} as const;

/** The path of a page. */
export type PagePath = keyof typeof PAGES;

const PATHS = Object.keys(PAGES) as PagePath[];

/** The page of an address, and what stands in it where the path varies; undefined of an unknown one. */
export function pageOf(
  segments: readonly string[],
): { readonly path: PagePath; readonly values: readonly string[] } | undefined {
  for (const path of PATHS) {
    const parts = path.slice(1).split('/');
    if (parts.length !== segments.length) continue;
    if (!parts.every((part, at) => part.startsWith(':') || part === segments[at])) continue;
    return { path, values: segments.filter((_, at) => parts[at]?.startsWith(':')) };
  }
  return undefined;
}
