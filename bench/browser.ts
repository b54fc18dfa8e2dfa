import { setTimeout as wait } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { findChromium } from '../src/engine/browser/chromium-binary.ts';
import { call, JAVASCRIPT_TOKEN, report, startBench } from './bench-setup.ts';

// Measures the pages per second of a JavaScript crawler, and of a plain driver with as many
// contexts in the same run.

const PAGES = 200;
/** The default of BROWSER_PAGES. */
const AT_ONCE = 4;

interface Details {
  readonly activity: { readonly completed: number; readonly failed: number };
}

async function bare(peers: string): Promise<number> {
  const executablePath = await findChromium('');
  if (executablePath === undefined) throw new Error('there is no Chromium on this machine');
  const browser = await chromium.launch({ executablePath, args: ['--disable-gpu'] });
  let next = 0;
  async function worker(): Promise<void> {
    while (next < PAGES) {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`${peers}/page/${next++}`);
      await page.content();
      await context.close();
    }
  }
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const seconds = (performance.now() - startedAt) / 1_000;
  await browser.close();
  return PAGES / seconds;
}

async function crawled(service: string, peers: string): Promise<number> {
  const base = `${service}/crawler/${JAVASCRIPT_TOKEN}`;
  await call(base, 'POST', { name: 'js', concurrency: AT_ONCE });
  const path = `${base}/js`;
  const push = async (count: number) => {
    const items = Array.from({ length: count }, (_, n) => ({ url: `${peers}/page/${n}` }));
    await call(`${path}/push_batch`, 'POST', { items });
  };
  const until = async (count: number) => {
    for (;;) {
      const { activity } = await call<Details>(path, 'GET');
      if (activity.failed > 0) throw new Error('a page failed');
      if (activity.completed === count) return;
      await wait(20);
    }
  };
  // The first page starts the browser.
  await push(1);
  await until(1);
  const startedAt = performance.now();
  await push(PAGES);
  await until(PAGES + 1);
  return PAGES / ((performance.now() - startedAt) / 1_000);
}

async function main(): Promise<void> {
  await using bench = await startBench();
  const limit = await bare(bench.peers);
  report(`bare driver, ${AT_ONCE} contexts at once`, limit);
  report('crawled into storage', await crawled(bench.service, bench.peers), limit);
}

await main();
