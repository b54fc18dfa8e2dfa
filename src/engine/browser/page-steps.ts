import { setTimeout as wait } from 'node:timers/promises';
import type { Stopwatch } from '../../domain/job-try.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import type { FailureReason } from '../../domain/status.ts';
import { waitForEffects } from './click-effects.ts';
import type { Device } from './devices.ts';
import { waitForElement } from './find-element.ts';
import type { NetworkQuiet } from './network-quiet.ts';
import type { OpenedWindows } from './opened-windows.ts';
import { click, clickSequence } from './page-click.ts';
import type { PageNavigation } from './page-navigation.ts';
import { scrollDown } from './page-scroll.ts';
import { runSnippet } from './page-snippet.ts';
import type { BrowserPage } from './running-browser.ts';

/** Longest wait for a page to load; after it, the page is captured as far as it has loaded. */
const LOAD_MS = 30_000;
/** Longest wait for what else a document loads, once it has been read: it may never come. */
const LATE_LOAD_MS = 10_000;
/** The same for a picture, which shows images and fonts. */
const LATE_PICTURE_LOAD_MS = 15_000;
/**
 * Wait for the end of loading after the `load` event; a page that writes to its document never
 * stops.
 */
const STOP_MS = 300;
const SELECTOR_MS = 30_000;
const SNIPPET_MS = 10_000;
const CLICK_MS = 5_000;
/** Longest wait for what a click starts, except for a document. */
const EFFECTS_MS = 10_000;
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
  readonly windows: OpenedWindows;
  readonly budget: Budget;
  /** Times the parts of the visit. */
  readonly watch: Stopwatch;
  /** Whether images and all else count, because a picture is taken. */
  readonly waitsForRest: boolean;
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
export async function waitForLoad({ navigation, budget, waitsForRest }: Visit): Promise<void> {
  const until = performance.now() + budget(LOAD_MS);
  const before = navigation.documents;
  const isEndless = (): boolean => navigation.documents - before > MAX_DOCUMENTS;
  for (;;) {
    const left = Math.max(until - performance.now(), 1);
    const isReady = (): boolean =>
      (navigation.isLoaded || navigation.isStopped) && !navigation.isLeaving;
    const isRead = (): boolean => navigation.isRead && !navigation.isLeaving;
    const isDone = (): boolean => isEndless() || isReady();
    let inTime = await navigation.until(() => isDone() || isRead(), left);
    if (inTime && !isDone()) {
      inTime = await navigation.until(
        () => isDone() || !isRead(),
        Math.min(
          waitsForRest ? LATE_PICTURE_LOAD_MS : LATE_LOAD_MS,
          Math.max(until - performance.now(), 1),
        ),
      );
    }
    if (isEndless()) throw new EndlessNavigation('the page keeps navigating');
    if (!inTime) return navigation.stopWaiting();
    // A refresh is announced after the `load` event, just before loading stops.
    await navigation.until(() => navigation.isStopped || navigation.isLeaving, STOP_MS);
    if (isReady()) return;
  }
}

/**
 * Waits, clicks and scrolls as the parameters ask. Returns why that failed, if it did.
 */
export async function runSteps(
  visit: Visit,
  parameters: CrawlParameters,
): Promise<FailureReason | undefined> {
  const { page, windows, budget, ended, watch } = visit;
  const { css_click_selector: selector, page_wait: waitMs = 0 } = parameters;
  for (const { selectors, isOptional } of clickSequence(parameters.wait_for_selector)) {
    const isThere = await waitForElement(page, selectors, budget(SELECTOR_MS));
    watch.lap('wait_for_selector');
    if (!isThere && !isOptional) return 'selector_not_found';
  }
  if (parameters.js_snippet !== undefined) {
    if (!(await runSnippet(page, parameters.js_snippet, budget(SNIPPET_MS))))
      return 'snippet_failed';
    await waitForLoad(visit);
    watch.lap('js_snippet');
  }
  if (waitMs > 0) {
    // For a page that has ended, what comes next fails at once.
    await Promise.race([wait(budget(waitMs), undefined, { signal: ended }), page.ended]);
    watch.lap('page_wait');
  }
  for (const target of clickSequence(selector)) {
    windows.take();
    if (!(await click(page, target, budget(CLICK_MS)))) {
      if (target.isOptional) continue;
      return 'selector_not_found';
    }
    await waitForEffects(visit, budget(EFFECTS_MS));
    const url = windows.take();
    // What a user would then look at is the new window.
    if (url !== undefined) await page.send('Page.navigate', { url }, budget(LOAD_MS));
    await waitForLoad(visit);
    watch.lap('click');
  }
  if (parameters.scroll === true) {
    await scrollDown(visit, budget((parameters.scroll_interval ?? DEFAULT_SCROLL_S) * 1_000));
    watch.lap('scroll');
  }
  return undefined;
}
