import { setTimeout as wait } from 'node:timers/promises';
import { CdpError } from './cdp-connection.ts';
import { evaluate } from './page-reader.ts';
import type { BrowserPage } from './running-browser.ts';

const POLL_MS = 100;

/**
 * Source of a function `find(selector)` for an isolated world, so built-ins that the page has
 * replaced are not used. Open shadow trees are searched, too.
 */
export const FIND_ELEMENT = `
  const withShadow = (root) => [root].concat(...[...root.querySelectorAll('*')]
    .filter((each) => each.shadowRoot).map((each) => withShadow(each.shadowRoot)));
  const find = (selector) => {
    try {
      const found = document.querySelector(selector);
      if (found !== null) return found;
      for (const root of withShadow(document)) {
        const inside = root.querySelector(selector);
        if (inside !== null) return inside;
      }
    } catch {}
    return null;
  };
`;

/**
 * Waits until one of the selectors matches, at most `ms`; also while the page navigates. Returns
 * whether one does.
 */
export async function waitForElement(
  page: BrowserPage,
  selectors: readonly string[],
  ms: number,
): Promise<boolean> {
  const until = performance.now() + ms;
  const isThere = `(() => { ${FIND_ELEMENT}
    return ${JSON.stringify(selectors)}.some((each) => find(each) !== null); })()`;
  for (;;) {
    const left = until - performance.now();
    if (left <= 0) return false;
    try {
      if ((await evaluate(page, isThere, left)) === true) return true;
    } catch (error) {
      // The page has just navigated, or is busy until the end.
      if (!(error instanceof CdpError) || error.kind === 'closed') throw error;
    }
    await wait(Math.min(POLL_MS, left));
  }
}
