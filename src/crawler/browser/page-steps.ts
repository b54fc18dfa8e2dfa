import type { Page } from 'playwright-core';
import type { CrawlParameters } from '../../domain/parameters.ts';

/** Half of this is for a page that never gets quiet; what it has loaded by then is the page. */
const SETTLE_MS = 30_000;
const CLICK_MS = 5_000;
const SCROLL_STEP_MS = 250;
const DEFAULT_SCROLL_SECONDS = 10;
/** What Chromium can draw in one picture. */
const MAX_PICTURE_PIXELS = 16_384;
const PICTURE_MS = 20_000;
const MAX_PICTURE_BYTES = 12 * 1024 * 1024;

/** How long one step may take of what is left. */
export type Budget = (mostMs: number) => number;

/** Waits until the page and what it shows at first have loaded, or long enough. */
export async function settle(page: Page, parameters: CrawlParameters, budget: Budget) {
  await leniently(page.waitForLoadState('load', { timeout: budget(SETTLE_MS) }));
  if (parameters.ajax_wait === true) {
    await leniently(page.waitForLoadState('networkidle', { timeout: budget(SETTLE_MS) }));
  }
}

/** Does to the page what the parameters ask for. False when the element to click is not there. */
export async function interact(
  page: Page,
  parameters: CrawlParameters,
  budget: Budget,
): Promise<boolean> {
  const { css_click_selector: selector, page_wait: waitMs = 0 } = parameters;
  if (waitMs > 0) await page.waitForTimeout(budget(waitMs));
  if (selector !== undefined) {
    try {
      await page
        .locator(`css=${selector}`)
        .first()
        .click({ timeout: budget(CLICK_MS) });
    } catch {
      // It is not there, covered, or more than Chromium understands. A page that is gone fails at its next step.
      return false;
    }
    await leniently(page.waitForLoadState('networkidle', { timeout: budget(CLICK_MS) }));
  }
  if (parameters.scroll === true) {
    await scroll(page, budget((parameters.scroll_interval ?? DEFAULT_SCROLL_SECONDS) * 1_000));
  }
  return true;
}

async function scroll(page: Page, ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until) {
    await page.evaluate('window.scrollBy(0, window.innerHeight)');
    await page.waitForTimeout(Math.max(Math.min(SCROLL_STEP_MS, until - performance.now()), 1));
  }
}

/** A JPEG of the page, of its whole length as far as that can be drawn. */
export async function takePicture(
  page: Page,
  parameters: CrawlParameters,
  budget: Budget,
): Promise<Uint8Array> {
  const picture = await drawn(page, parameters, budget, 80);
  // Noise hardly compresses; what is kept must fit into a database's record.
  return picture.length <= MAX_PICTURE_BYTES ? picture : drawn(page, parameters, budget, 20);
}

async function drawn(
  page: Page,
  parameters: CrawlParameters,
  budget: Budget,
  quality: number,
): Promise<Uint8Array> {
  const options = { type: 'jpeg', quality, timeout: budget(PICTURE_MS) } as const;
  if (parameters.mode === 'viewport') return page.screenshot(options);
  const height = Number(await page.evaluate('document.documentElement.scrollHeight'));
  const { width = 0 } = page.viewportSize() ?? {};
  const scale = Number(await page.evaluate('window.devicePixelRatio'));
  if (height * scale <= MAX_PICTURE_PIXELS) return page.screenshot({ ...options, fullPage: true });
  const clip = { x: 0, y: 0, width, height: Math.floor(MAX_PICTURE_PIXELS / scale) };
  return page.screenshot({ ...options, fullPage: true, clip });
}

/** Whether it came to its end; a step that takes too long is passed over. */
async function leniently(step: Promise<unknown>): Promise<boolean> {
  try {
    await step;
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'TimeoutError') return false;
    throw error;
  }
}
