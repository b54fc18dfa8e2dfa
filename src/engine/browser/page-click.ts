import { setTimeout as wait } from 'node:timers/promises';
import { type ClickTarget, parseClickSelectors } from '../../domain/click-selectors.ts';
import { CdpError } from './cdp-connection.ts';
import { FIND_ELEMENT } from './find-element.ts';
import { evaluate } from './page-reader.ts';
import type { BrowserPage } from './running-browser.ts';

const POLL_MS = 100;
/**
 * Of several selectors the first is preferred; a later one is clicked only when the first has not
 * appeared for this long.
 */
const PREFERENCE_MS = 1_000;

interface Found {
  /** `ready`: a mouse click at this point reaches the element. */
  readonly state: 'absent' | 'hidden' | 'covered' | 'ready';
  readonly index: number;
  readonly x: number;
  readonly y: number;
}

const locate = (selectors: readonly string[]): string => `(() => {
  ${FIND_ELEMENT}
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
  `(() => { ${FIND_ELEMENT} find(${JSON.stringify(selector)})?.click(); })()`;

/** An element that may be missing is not waited for any longer. */
const OPTIONAL_MS = 2_000;

/** The clicks of `css_click_selector`, or the elements of `wait_for_selector`, in order. */
export function clickSequence(selector: string | undefined): ClickTarget[] {
  try {
    return selector === undefined ? [] : parseClickSelectors(selector);
  } catch {
    // The push refuses invalid selectors; one that got here matches nothing.
    return [{ selectors: [':not(*)'], isOptional: false }];
  }
}

/**
 * Clicks the first selector that matches, waiting for it up to `ms`, or 2 s when it is optional. It
 * is clicked with the mouse, or by the element's own `click()` when it stays hidden or covered all that time. Returns
 * false when nothing matches.
 */
export async function click(
  page: BrowserPage,
  { selectors, isOptional }: ClickTarget,
  ms: number,
): Promise<boolean> {
  const startedAt = performance.now();
  let before: Found | undefined;
  let last: Found | undefined;
  while (performance.now() - startedAt < ms) {
    last = await locateElement(page, selectors, ms);
    const elapsedMs = performance.now() - startedAt;
    if (isOptional && last.state === 'absent' && elapsedMs > OPTIONAL_MS) return false;
    const isPreferred = last.index === 0 || elapsedMs > PREFERENCE_MS;
    if (last.state === 'ready' && isPreferred && isAtSamePlace(before, last)) {
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

async function locateElement(page: BrowserPage, selectors: readonly string[], ms: number) {
  try {
    return (await evaluate(page, locate(selectors), ms)) as Found;
  } catch (error) {
    // The page has just navigated to another document.
    if (!(error instanceof CdpError) || error.kind !== 'refused') throw error;
    return { state: 'absent', index: -1, x: 0, y: 0 } as const;
  }
}

function isAtSamePlace(before: Found | undefined, now: Found): boolean {
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
