import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { findChromium } from '../src/engine/browser/chromium-binary.ts';
import { call, JAVASCRIPT_TOKEN, startPeers, startService } from './bench-setup.ts';
import { crawleePages } from './crawlee-pages.ts';

// Measures the pages per second of a JavaScript crawler, from the queue to storage, and of Crawlee
// in the same run with the same Chromium: both in turn, several rounds, each on the small page and on the
// one that a framework renders. `--quick` for a try.

const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, help: { type: 'boolean' } },
});
const PAGES = values.quick === true ? 40 : 200;
const ROUNDS = values.quick === true ? 1 : 3;
const CONCURRENCIES = values.quick === true ? [2] : [1, 2, 4, 8];
const SITES = ['small', 'app'] as const;

interface Details {
  readonly activity: { readonly completed: number; readonly failed: number };
}

let crawlers = 0;

async function ownPages(
  service: string,
  urls: readonly string[],
  concurrency: number,
): Promise<number> {
  const base = `${service}/crawler/${JAVASCRIPT_TOKEN}`;
  crawlers += 1;
  const name = `js-${crawlers}`;
  await call(base, 'POST', { name, concurrency });
  const startedAt = performance.now();
  await call(`${base}/${name}/push_batch`, 'POST', { items: urls.map((url) => ({ url })) });
  for (;;) {
    const { activity } = await call<Details>(`${base}/${name}`, 'GET');
    if (activity.failed > 0) throw new Error('a page failed');
    if (activity.completed === urls.length) break;
    await wait(20);
  }
  return urls.length / ((performance.now() - startedAt) / 1_000);
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0;
}

async function measure(site: string, concurrency: number, executablePath: string): Promise<void> {
  await using peers = await startPeers('browser-site.ts');
  await using service = await startService({ BROWSER_PAGES: String(concurrency) });
  const urls = (count: number) =>
    Array.from({ length: count }, (_, n) => `${peers.sites[0]}/${site}/${n}`);
  // The first pages start the browser.
  await ownPages(service.url, urls(concurrency), concurrency);
  const own: number[] = [];
  const crawlee: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    crawlee.push(await crawleePages(urls(PAGES), concurrency, executablePath));
    own.push(await ownPages(service.url, urls(PAGES), concurrency));
  }
  const ratios = own.map((each, round) => each / (crawlee[round] ?? 1));
  const figures = [median(own), median(crawlee), median(ratios)].map((each) => each.toFixed(1));
  console.log(
    `${site.padEnd(6)} ${String(concurrency).padStart(2)} at once   own ${figures[0]}/s   Crawlee ${figures[1]}/s   ratio ${figures[2]}`,
  );
}

if (values.help === true) {
  console.log('npm run bench:browser [-- --quick]');
} else {
  const executablePath = await findChromium('');
  if (executablePath === undefined) throw new Error('there is no Chromium on this machine');
  for (const site of SITES) {
    for (const concurrency of CONCURRENCIES) await measure(site, concurrency, executablePath);
  }
}
