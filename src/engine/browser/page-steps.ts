import { setTimeout as wait } from 'node:timers/promises';
import type { CrawlParameters } from '../../domain/parameters.ts';
import { CdpError } from './cdp-connection.ts';
import type { Device } from './devices.ts';
import { waitForElement } from './find-element.ts';
import type { NetworkQuiet } from './network-quiet.ts';
import { click, clickSequence } from './page-click.ts';
import type { PageNavigation } from './page-navigation.ts';
import type { BrowserPage } from './running-browser.ts';

/** Longest wait for a page to load; after it, the page is captured as far as it has loaded. */
const LOAD_MS = 30_000;
/**
 * Wait for the end of loading after the `load` event; a page that writes to its document never
 * stops.
 */
const STOP_MS = 300;
const SELECTOR_MS = 30_000;
const CLICK_MS = 5_000;
const SCROLL_STEP_MS = 250;
const DEFAULT_SCROLL_S = 10;
/** A page that shows this many documents without one that loads counts as endless. */
const MAX_DOCUMENTS = 20;

/** How long one step may take: `mostMs`, or what is left of the crawl's time if that is less. */
export type Budget = (mostMs: number) => number;

/** A page that is visited. */
export interface Visit {
  readonly page: BrowserPage;
  readonly navigation: PageNavigation;
  readonly quiet: NetworkQuiet;
  readonly device: Device;
  readonly budget: Budget;
  /** Aborted when the visit is over; waits end with it. */
  readonly ended: AbortSignal;
}

/** The page navigates from one document to the next without end. */
export class EndlessNavigation extends Error {
  override readonly name = 'EndlessNavigation';
}

/**
 * Waits until the page has loaded and is not about to navigate, at most 30 s. Rejects with {@link
 * EndlessNavigation}.
 */
export async function waitForLoad({ navigation, budget }: Visit): Promise<void> {
  const until = performance.now() + budget(LOAD_MS);
  const before = navigation.documents;
  const isEndless = (): boolean => navigation.documents - before > MAX_DOCUMENTS;
  for (;;) {
    const left = Math.max(until - performance.now(), 1);
    const isReady = (): boolean =>
      (navigation.isLoaded || navigation.isStopped) && !navigation.isLeaving;
    const inTime = await navigation.until(() => isEndless() || isReady(), left);
    if (isEndless()) throw new EndlessNavigation('the page keeps navigating');
    if (!inTime) return;
    // A refresh is announced after the `load` event, just before loading stops.
    await navigation.until(() => navigation.isStopped || navigation.isLeaving, STOP_MS);
    if (isReady()) return;
  }
}

/**
 * Waits, clicks and scrolls as the parameters ask. Returns false when an element to wait for or to
 * click is missing.
 */
export async function runSteps(visit: Visit, parameters: CrawlParameters): Promise<boolean> {
  const { page, quiet, budget, ended } = visit;
  const { css_click_selector: selector, page_wait: waitMs = 0 } = parameters;
  for (const selectors of clickSequence(parameters.wait_for_selector)) {
    if (!(await waitForElement(page, selectors, budget(SELECTOR_MS)))) return false;
  }
  if (waitMs > 0) {
    // For a page that has ended, what comes next fails at once.
    await Promise.race([wait(budget(waitMs), undefined, { signal: ended }), page.ended]);
  }
  for (const selectors of clickSequence(selector)) {
    if (!(await click(page, selectors, budget(CLICK_MS)))) return false;
    await quiet.wait(budget(CLICK_MS));
    await waitForLoad(visit);
  }
  if (parameters.scroll === true) {
    await scroll(visit, budget((parameters.scroll_interval ?? DEFAULT_SCROLL_S) * 1_000));
  }
  return true;
}

/**
 * Turns the mouse wheel over the middle of the window, which scrolls the page or an element in it.
 */
async function scroll({ page, device: { screen } }: Visit, ms: number): Promise<void> {
  const until = performance.now() + ms;
  const at = { x: screen.width / 2, y: screen.height / 2 };
  while (performance.now() < until) {
    const left = Math.max(until - performance.now(), 1);
    const next = wait(Math.min(SCROLL_STEP_MS, left));
    await page
      .send(
        'Input.dispatchMouseEvent',
        { ...at, type: 'mouseWheel', deltaX: 0, deltaY: screen.height },
        left,
      )
      .catch((error: unknown) => {
        // The page is busy and scrolls later.
        if (!(error instanceof CdpError) || error.kind === 'closed') throw error;
      });
    await next;
  }
}
