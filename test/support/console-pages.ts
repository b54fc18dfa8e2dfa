import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { CRAWLER_TABS } from '../../src/console/pages/crawler/tabs.ts';
import { PAGES } from '../../src/console/shell/pages.ts';
import type { ConsoleBrowser } from './console-browser.ts';
import type { ConsoleScene } from './console-scene.ts';
import { ADMIN, NORMAL } from './tokens.ts';

/** How large and in which theme a page is looked at. */
export interface PageLook {
  /** Of the window, in pixels. */
  readonly width: number;
  readonly theme: 'light' | 'dark';
  /** 2 is the browser's zoom of 200 %: half as many pixels of CSS, twice as dense. Default 1. */
  readonly zoom?: number;
}

/** What stands in the place of what varies in a path. */
const SAMPLES: Readonly<Record<string, (rid: string) => readonly string[]>> = {
  '/crawlers/:name': () => ['/crawlers/news', '/crawlers/partner'],
  '/crawlers/:name/:tab': () =>
    Object.keys(CRAWLER_TABS).map((tab) => `/crawlers/${WITH[tab] ?? 'news'}/${tab}`),
  '/jobs/:rid': (rid) => [`/jobs/${rid}`, '/jobs/0123456789abcdef01234567'],
  '/find': () => ['/find', '/find?q=page'],
};
/** The crawlers of the scene that have something to show in a tab; the others have it in `news`. */
const WITH: Readonly<Record<string, string>> = {
  jobs: 'forum',
  hosts: 'flights',
  deliveries: 'shop',
};

/** Every page of the console with something in it, and the token it needs. */
export function samplesOf(rid: string): readonly (readonly [path: string, token: string])[] {
  const found = Object.entries(PAGES).flatMap(([path, whose]) => {
    const paths = SAMPLES[path]?.(rid) ?? [path];
    return paths.map((each) => [each, whose === 'operator' ? ADMIN : NORMAL] as const);
  });
  const unknown = found.filter(([path]) => path.includes('/:'));
  if (unknown.length > 0) throw new Error(`pages without a sample: ${unknown.join(' ')}`);
  return [...found, ['/nowhere', NORMAL], ['/system', NORMAL]];
}

/**
 * Expects of every page of the scene that axe-core finds nothing on it, and that it needs no
 * scrolling to the side. `looks` are the ways in which each is looked at.
 */
export async function expectAccessiblePages(
  browser: ConsoleBrowser,
  { app }: Pick<ConsoleScene, 'app'>,
  looks: readonly PageLook[],
): Promise<void> {
  const rid = await deliveredRid(app);
  const outside = await browser.open('', '');
  await expectAccessible(outside, '/', looks);
  await outside.context().close();
  for (const token of [NORMAL, ADMIN]) {
    const page = await browser.open('', token);
    for (const [path, by] of samplesOf(rid)) {
      if (by !== token) continue;
      await goWithin(page, path);
      await expectAccessible(page, path, looks);
    }
    await page.context().close();
  }
  // The browser itself notes that a token is not the operator's, or no account's, and unknown jobs.
  browser.problems.splice(0).forEach((each) => expect(each).toMatch(/40[14]/));
}

/** The `rid` of a delivery of the scene. */
export async function deliveredRid(app: ConsoleScene['app']): Promise<string> {
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/shop/deliveries`);
  return (json.deliveries as { rid: string }[])[0]?.rid ?? '';
}

async function expectAccessible(
  page: Page,
  path: string,
  looks: readonly PageLook[],
): Promise<void> {
  const metrics = await page.context().newCDPSession(page);
  await untilRead(page);
  for (const { width, theme, zoom = 1 } of looks) {
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

/** Waits until the page shows what it reads at first: what is being read is not what people look at. */
export async function untilRead(page: Page): Promise<void> {
  await page.locator('main h1').waitFor();
  await page.getByText('Loading…').first().waitFor({ state: 'detached' });
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

/**
 * Rules of axe-core that look at colours. The styles choose nothing else by the theme, so the others find
 * the same in both.
 */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

async function faultsOf(
  page: Page,
  impacts: readonly string[],
  rules: readonly string[] = [],
): Promise<string[]> {
  // Over the DevTools protocol, which the policy of the page does not concern.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  return page.evaluate(
    async ({ impacts: wanted, rules: only }) => {
      const { violations } = await (window as unknown as { axe: typeof axe }).axe.run(document, {
        resultTypes: ['violations'],
        ...(only.length === 0 ? {} : { runOnly: { type: 'rule', values: [...only] } }),
      });
      return violations
        .filter(({ impact }) => wanted.includes(impact ?? ''))
        .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    },
    { impacts, rules },
  );
}

const ALL_IMPACTS = ['minor', 'moderate', 'serious', 'critical'];

/** What axe-core finds on a page, of any level. */
export async function allFaults(page: Page): Promise<string[]> {
  return faultsOf(page, ALL_IMPACTS);
}

/** What axe-core finds of colours only, of any level: for a page whose other theme was looked at in whole. */
export async function colourFaults(page: Page): Promise<string[]> {
  return faultsOf(page, ALL_IMPACTS, COLOUR_RULES);
}

/** What axe-core finds on a page in both themes, by theme. */
export async function faultsInBothThemes(page: Page): Promise<Record<'light' | 'dark', string[]>> {
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await allFaults(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  return { light, dark: await colourFaults(page) };
}

/** What {@link faultsInBothThemes} finds where there is no fault. */
export const NO_FAULTS = { light: [], dark: [] };
