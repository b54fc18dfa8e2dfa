import { tmpdir } from 'node:os';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { browserFolder, findChromium } from '../../src/engine/browser/chromium-binary.ts';
import { prepareFonts } from '../../src/engine/browser/chromium-fonts.ts';

/** How a person sees the console. */
export interface ConsoleView {
  readonly width?: number;
  readonly height?: number;
  readonly theme?: 'light' | 'dark';
  /** Whether `page.clock` can put the time of the page forward. Default false. */
  readonly hasTestClock?: boolean;
  /** What `navigator.language` says. Default that of the locale. */
  readonly language?: string;
  /** A script that runs before those of the page. */
  readonly initScript?: () => void;
}

/** A Chromium that opens the console and notes what a person would find in its tools. */
export interface ConsoleBrowser extends AsyncDisposable {
  /** Opens a page of its own, signed in by `token` unless it is empty. */
  open(path: string, token: string, view?: ConsoleView): Promise<Page>;
  /** Errors, and violations of the policy, of all pages so far; a test takes out what it expects. */
  readonly problems: string[];
}

/** Starts the Chromium of the service with Playwright. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = await findChromium(process.env.CHROMIUM_PATH ?? '');
  if (executablePath === undefined) throw new Error('there is no Chromium on this machine');
  const fonts = await prepareFonts(await browserFolder());
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--force-color-profile=srgb',
    ],
    env: {
      PATH: process.env.PATH ?? '',
      HOME: tmpdir(),
      LANG: 'en_US.UTF-8',
      TZ: 'Europe/Berlin',
      ...(fonts === undefined ? {} : { FONTCONFIG_FILE: fonts }),
    },
  });
}

/** Starts the Chromium of the service for the console at `url`. */
export async function openConsoleBrowser(url: string): Promise<ConsoleBrowser> {
  const browser = await launchBrowser();
  const problems: string[] = [];
  return {
    problems,
    async open(path, token, view = {}) {
      const { width = 1_440, height = 900, theme = 'light', hasTestClock = false } = view;
      const { language, initScript } = view;
      const context: BrowserContext = await browser.newContext({
        viewport: { width, height },
        colorScheme: theme,
        locale: 'en-GB',
        reducedMotion: 'reduce',
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      const page = await context.newPage();
      if (hasTestClock) await page.clock.install();
      if (language !== undefined) {
        await page.addInitScript((value) => {
          Object.defineProperty(Navigator.prototype, 'language', { get: () => value });
        }, language);
      }
      if (initScript !== undefined) await page.addInitScript(initScript);
      page.setDefaultTimeout(90_000);
      page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
      page.on('console', (message) => {
        if (message.type() === 'error') problems.push(`console: ${message.text()}`);
      });
      await page.goto(`${url}/console${path}`);
      if (token !== '') {
        await page.getByLabel('Token').fill(token);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('navigation', { name: 'Places' }).waitFor();
      }
      return page;
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}
