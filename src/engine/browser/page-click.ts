import { setTimeout as wait } from 'node:timers/promises';
import { parseClickSelectors } from '../../domain/click-selectors.ts';
import { CdpError } from './cdp-connection.ts';
import { evaluate } from './page-reader.ts';
import type { BrowserPage } from './running-browser.ts';

const POLL_MS = 100;
/**
 * Whoever lists several selectors means the first; a later one is taken when the first has had this
 * long to appear.
 */
const PREFERENCE_MS = 1_000;

interface Found {
  /** `ready`: a mouse at this point meets the element. */
  readonly state: 'absent' | 'hidden' | 'covered' | 'ready';
  readonly index: number;
  readonly x: number;
  readonly y: number;
}

/**
 * What a page's own world has replaced is not used here. Shadow trees are searched where they are
 * open.
 */
const FIND = `
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

const locate = (selectors: readonly string[]): string => `(() => {
  ${FIND}
  for (const [index, selector] of ${JSON.stringify(selectors)}.entries()) {
    const element = find(selector);
    if (element === null) continue;
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const x = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2;
    const y = (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2;
    const isHidden = right <= left || bottom <= top || getComputedStyle(element).visibility === 'hidden';
    if (isHidden) return { state: 'hidden', index, x, y };
    let hit = document.elementFromPoint(x, y);
    for (let inner = hit; inner !== null && inner.shadowRoot; hit = inner) {
      inner = inner.shadowRoot.elementFromPoint(x, y);
      if (inner === null || inner === hit) break;
    }
    for (let each = hit; each; each = each.parentNode ?? each.host) {
      if (each !== element) continue;
      const view = visualViewport;
      return { state: 'ready', index, x: (x - view.offsetLeft) * view.scale, y: (y - view.offsetTop) * view.scale };
    }
    return { state: 'covered', index, x, y };
  }
  return { state: 'absent', index: -1, x: 0, y: 0 };
})()`;

const clickByScript = (selector: string): string =>
  `(() => { ${FIND} find(${JSON.stringify(selector)})?.click(); })()`;

/** The clicks of `css_click_selector` in their order. */
export function clicksOf(selector: string | undefined): string[][] {
  try {
    return selector === undefined ? [] : parseClickSelectors(selector);
  } catch {
    // Refusing is the push's; by now it is a selector that nothing matches.
    return [[':not(*)']];
  }
}

/**
 * Clicks the first of `selectors` that there is, waiting for it up to `ms`: with the mouse when it
 * can be reached, else, where it is hidden or something lies over it all that time, by the
 * element's own `click()`. False when there is none.
 */
export async function click(
  page: BrowserPage,
  selectors: readonly string[],
  ms: number,
): Promise<boolean> {
  const startedAt = performance.now();
  let before: Found | undefined;
  let last: Found | undefined;
  while (performance.now() - startedAt < ms) {
    last = await locateIn(page, selectors, ms);
    const isPreferred = last.index === 0 || performance.now() - startedAt > PREFERENCE_MS;
    if (last.state === 'ready' && isPreferred && isSame(before, last)) {
      await clickAt(page, last, ms);
      return true;
    }
    before = last;
    await wait(POLL_MS);
  }
  const selector = selectors[last?.index ?? -1];
  if (selector === undefined) return false;
  await evaluate(page, clickByScript(selector), ms);
  return true;
}

async function locateIn(page: BrowserPage, selectors: readonly string[], ms: number) {
  try {
    return (await evaluate(page, locate(selectors), ms)) as Found;
  } catch (error) {
    // The page has just gone on to another document.
    if (!(error instanceof CdpError) || error.kind !== 'refused') throw error;
    return { state: 'absent', index: -1, x: 0, y: 0 } as const;
  }
}

function isSame(before: Found | undefined, now: Found): boolean {
  if (before?.state !== 'ready' || before.index !== now.index) return false;
  return Math.abs(before.x - now.x) < 1 && Math.abs(before.y - now.y) < 1;
}

async function clickAt(page: BrowserPage, { x, y }: Found, ms: number): Promise<void> {
  const at = { x, y, button: 'left', clickCount: 1 } as const;
  for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased'] as const) {
    const buttons = type === 'mousePressed' ? 1 : 0;
    await page.send('Input.dispatchMouseEvent', { ...at, type, buttons }, ms);
  }
}
