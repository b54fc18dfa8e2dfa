import { setTimeout as wait } from 'node:timers/promises';
import type { CrawlParameters } from '../../domain/parameters.ts';
import { CdpError } from './cdp-connection.ts';
import type { Device } from './devices.ts';
import type { NetworkQuiet } from './network-quiet.ts';
import { click, clicksOf } from './page-click.ts';
import type { PageNavigation } from './page-navigation.ts';
import type { BrowserPage } from './running-browser.ts';

/** Half of this is for a page that never gets quiet; what it has loaded by then is the page. */
const SETTLE_MS = 30_000;
/**
 * A page whose loading never ends though it has loaded writes to its document, or a frame of it
 * does.
 */
const STOP_MS = 300;
const CLICK_MS = 5_000;
const SCROLL_STEP_MS = 250;
const DEFAULT_SCROLL_SECONDS = 10;
/** A page that takes its reader on so often without ever having loaded has no end. */
const MAX_FOLLOWED = 20;

/** How long one step may take of what is left. */
export type Budget = (mostMs: number) => number;

/** A page that is looked at. */
export interface Visit {
  readonly page: BrowserPage;
  readonly navigation: PageNavigation;
  readonly quiet: NetworkQuiet;
  readonly device: Device;
  readonly budget: Budget;
}

/** The page leads from one document to the next without end. */
export class EndlessNavigation extends Error {
  override readonly name = 'EndlessNavigation';
}

/**
 * Waits until the page has loaded and shows no sign of going on to another, or long enough. Rejects
 * with {@link EndlessNavigation}.
 */
export async function settle({ navigation, budget }: Visit): Promise<void> {
  const until = performance.now() + budget(SETTLE_MS);
  const before = navigation.documents;
  const isEndless = (): boolean => navigation.documents - before > MAX_FOLLOWED;
  for (;;) {
    const left = Math.max(until - performance.now(), 1);
    const isThere = (): boolean =>
      (navigation.isLoaded || navigation.isStopped) && !navigation.isLeaving;
    const inTime = await navigation.until(() => isEndless() || isThere(), left);
    if (isEndless()) throw new EndlessNavigation('The page never stops going on');
    if (!inTime) return;
    // A refresh is announced after the page has loaded, just before it stops.
    await navigation.until(() => navigation.isStopped || navigation.isLeaving, STOP_MS);
    if (isThere()) return;
  }
}

/** Does to the page what the parameters ask for. False when an element to click is not there. */
export async function interact(visit: Visit, parameters: CrawlParameters): Promise<boolean> {
  const { page, quiet, budget } = visit;
  const { css_click_selector: selector, page_wait: waitMs = 0 } = parameters;
  if (waitMs > 0) await wait(budget(waitMs));
  for (const selectors of clicksOf(selector)) {
    if (!(await click(page, selectors, budget(CLICK_MS)))) return false;
    await quiet.wait(budget(CLICK_MS));
    await settle(visit);
  }
  if (parameters.scroll === true) {
    await scroll(visit, budget((parameters.scroll_interval ?? DEFAULT_SCROLL_SECONDS) * 1_000));
  }
  return true;
}

/**
 * Turns the wheel over the middle of the window: what is there scrolls, the page or a box within.
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
        // A page that is busy scrolls later.
        if (!(error instanceof CdpError) || error.kind === 'closed') throw error;
      });
    await next;
  }
}
