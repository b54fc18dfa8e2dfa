import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { ConsoleBrowser } from './console-browser.ts';
import { ADMIN, NORMAL } from './tokens.ts';

/** How large and in which theme a page is looked at. */
export interface PageLook {
  /** Of the window, in pixels. */
  readonly width: number;
  readonly theme: 'light' | 'dark';
  /** 2 is the browser's zoom of 200 %: half as many pixels of CSS, twice as dense. Default 1. */
  readonly zoom?: number;
}

/** Every page of the console, and whose it is. */
const PAGES: readonly (readonly [path: string, token: string])[] = [
  ['/crawlers', NORMAL],
  ['/crawlers/+new', NORMAL],
  ...['overview', 'jobs', 'hosts', 'batches', 'results', 'failures', 'push', 'settings'].map(
    (tab) => [`/crawlers/news/${tab}`, NORMAL] as const,
  ),
  ['/crawlers/shop/deliveries', NORMAL],
  ['/crawl', NORMAL],
  ['/find', NORMAL],
  ['/jobs/0123456789abcdef01234567', NORMAL],
  ['/storage', NORMAL],
  ['/account', NORMAL],
  ['/proxies', NORMAL],
  ['/accounts', ADMIN],
  ['/system', ADMIN],
  ['/setup', ADMIN],
];

/**
 * Expects of every page that axe-core finds nothing on it, and that it needs no scrolling
 * to the side. `looksOf` says in which ways the page of that number is looked at.
 */
export async function expectAccessiblePages(
  browser: ConsoleBrowser,
  looksOf: (at: number) => readonly PageLook[],
): Promise<void> {
  for (const token of [NORMAL, ADMIN]) {
    const page = await browser.open('', token);
    const metrics = await page.context().newCDPSession(page);
    for (const [at, [path, by]] of PAGES.entries()) {
      if (by !== token) continue;
      await goWithin(page, path);
      await page.locator('main h1').waitFor();
      for (const { width, theme, zoom = 1 } of looksOf(at)) {
        await metrics.send('Emulation.setDeviceMetricsOverride', {
          width: Math.round(width / zoom),
          height: Math.round(800 / zoom),
          deviceScaleFactor: zoom,
          mobile: false,
        });
        await page.emulateMedia({ colorScheme: theme });
        const faults = await allFaults(page);
        const seen = await page.evaluate(() => ({
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          density: devicePixelRatio,
        }));
        expect({ path, width, theme, ...seen, faults }).toEqual({
          path,
          width,
          theme,
          overflow: 0,
          density: zoom,
          faults: [],
        });
      }
    }
    await page.context().close();
  }
  // The browser itself notes that a token is not the operator's, or no account's, and unknown jobs.
  browser.problems.splice(0).forEach((each) => expect(each).toMatch(/40[14]/));
}

/** Opens a path without loading the console anew, which would end the session. */
export async function goWithin(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, '', `/console${to}`);
    dispatchEvent(new PopStateEvent('popstate'));
  }, path);
}

/** What axe-core finds that keeps people from using the page. */
export function seriousFaults(page: Page): Promise<string[]> {
  return faultsOf(page, ['serious', 'critical']);
}

async function faultsOf(page: Page, impacts: readonly string[]): Promise<string[]> {
  // Over the DevTools protocol, which the policy of the page does not concern.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  return page.evaluate(async (wanted) => {
    const { violations } = await (window as unknown as { axe: typeof axe }).axe.run(document, {
      resultTypes: ['violations'],
    });
    return violations
      .filter(({ impact }) => wanted.includes(impact ?? ''))
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  }, impacts);
}

/** What axe-core finds on a page, of any level. */
export async function allFaults(page: Page): Promise<string[]> {
  return faultsOf(page, ['minor', 'moderate', 'serious', 'critical']);
}
