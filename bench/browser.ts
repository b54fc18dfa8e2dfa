import { cpus } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { findChromium } from '../src/engine/browser/chromium-binary.ts';
import {
  type BenchService,
  call,
  JAVASCRIPT_TOKEN,
  startPeers,
  startService,
} from './bench-setup.ts';
import { crawleePages } from './crawlee-pages.ts';
import { describeMachine } from './machine.ts';
import { writeMarkedSection } from './marked-section.ts';
import { readTree } from './process-tree.ts';

const HELP = `Usage: npm run bench:browser [-- --quick] [--pages 200] [--rounds 3] [--write]

Pages per second of a JavaScript crawler, from the queue to storage, and of Crawlee in the same run with the same Chromium, in turn. The pages are a small one and one that a framework renders, 1, 2, 4 and 8 at once. Also processor seconds for a page, of the whole machine without the site; and the memory of the
service and its browser over 1,000 pages. The machine has to be idle.

  --quick   one round of 40 pages at two at once, and 200 pages for the memory, for a try
  --pages   pages of one measurement
  --rounds  measurements of each; figures are medians
  --write   puts the tables into docs/benchmarks.md
`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    pages: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '3' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const CONCURRENCIES = values.quick ? [2] : [1, 2, 4, 8];
const SITES = ['small', 'app'] as const;
const MEMORY_PAGES = values.quick ? 200 : 1_000;
const MEMORY_AT_ONCE = 4;
const MEGABYTE = 1024 * 1024;

function number(name: 'pages' | 'rounds', quick: number): number {
  const value = Number(values[name]);
  if (!(value >= 1 && value <= 100_000)) throw new Error(`--${name} must be a number from 1`);
  return values.quick ? quick : value;
}

interface Details {
  readonly activity: { readonly completed: number; readonly failed: number };
}

/** What a measurement has found. */
interface PagesFigure {
  readonly perSecond: number;
  /** Processor seconds for a page. */
  readonly cpuSeconds: number;
}

let crawlers = 0;

/** Crawls the URLs with a new crawler; calls `meanwhile` often. Returns pages per second. */
async function ownPages(
  service: string,
  urls: readonly string[],
  concurrency: number,
  meanwhile: (completed: number) => void = () => undefined,
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
    meanwhile(activity.completed);
    if (activity.completed === urls.length) break;
    await wait(20);
  }
  return urls.length / ((performance.now() - startedAt) / 1_000);
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0;
}

/** The processor seconds of everything that runs on the machine, which has to be idle otherwise. */
function machineCpuSeconds(): number {
  const busy = cpus().map(({ times }) => times.user + times.nice + times.sys + times.irq);
  return busy.reduce((sum, each) => sum + each, 0) / 1_000;
}

/** Measures pages, with the processor time that `readCpu` tells. */
async function withCpu(
  pages: number,
  readCpu: () => number,
  crawl: () => Promise<number>,
): Promise<PagesFigure> {
  const before = readCpu();
  const perSecond = await crawl();
  return { perSecond, cpuSeconds: (readCpu() - before) / pages };
}

async function measure(site: string, concurrency: number, executablePath: string): Promise<string> {
  await using peers = await startPeers('browser-site.ts');
  await using service = await startService({ BROWSER_PAGES: String(concurrency) });
  const pages = number('pages', 40);
  const urls = (count: number) =>
    Array.from({ length: count }, (_, n) => `${peers.sites[0]}/${site}/${n}`);
  // The first pages start the browser.
  await ownPages(service.url, urls(concurrency), concurrency);
  // Of the whole machine, without the site: browsers that are ended take their figures with them.
  const readCpu = () => machineCpuSeconds() - readTree(peers.pid).cpuSeconds;
  const own: PagesFigure[] = [];
  const crawlee: PagesFigure[] = [];
  for (let round = 0; round < number('rounds', 1); round += 1) {
    crawlee.push(
      await withCpu(pages, readCpu, () => crawleePages(urls(pages), concurrency, executablePath)),
    );
    own.push(await withCpu(pages, readCpu, () => ownPages(service.url, urls(pages), concurrency)));
  }
  const of = (figures: readonly PagesFigure[], kind: keyof PagesFigure): number =>
    median(figures.map((each) => each[kind]));
  const ratio = median(own.map((each, n) => each.perSecond / (crawlee[n]?.perSecond ?? 1)));
  const cpuRatio = median(own.map((each, n) => each.cpuSeconds / (crawlee[n]?.cpuSeconds ?? 1)));
  const row = [
    site === 'small' ? 'small page' : 'React, 16 further requests',
    String(concurrency),
    of(own, 'perSecond').toFixed(1),
    of(crawlee, 'perSecond').toFixed(1),
    ratio.toFixed(1),
    of(own, 'cpuSeconds').toFixed(3),
    of(crawlee, 'cpuSeconds').toFixed(3),
    cpuRatio.toFixed(2),
  ];
  return `| ${row.join(' | ')} |`;
}

/** The memory of the service and its browser in tenths of a series of pages. */
async function measureMemory(): Promise<string> {
  await using peers = await startPeers('browser-site.ts');
  await using service: BenchService = await startService({ BROWSER_PAGES: String(MEMORY_AT_ONCE) });
  const urls = Array.from({ length: MEMORY_PAGES }, (_, n) => `${peers.sites[0]}/app/${n}`);
  const parts = Array.from({ length: 10 }, (): number[] => []);
  let readAt = 0;
  await ownPages(service.url, urls, MEMORY_AT_ONCE, (completed) => {
    if (performance.now() - readAt < 500) return;
    const part = Math.min(9, Math.floor((completed / MEMORY_PAGES) * 10));
    parts[part]?.push(readTree(service.pid, { memory: true }).bytes);
    readAt = performance.now();
  });
  const tenths = parts.map((each) => (median(each) / MEGABYTE).toFixed(0));
  return `Memory of the service and its browser (PSS, MB), medians of the tenths of ${MEMORY_PAGES} React pages, ${MEMORY_AT_ONCE} at once: ${tenths.join(', ')}.`;
}

async function main(): Promise<void> {
  const executablePath = await findChromium('');
  if (executablePath === undefined) throw new Error('there is no Chromium on this machine');
  const lines = [
    '| page | at once | pages/s | Crawlee | ratio | CPU seconds a page | Crawlee | ratio |',
    '|---|---|---|---|---|---|---|---|',
  ];
  console.log(lines.join('\n'));
  for (const site of SITES) {
    for (const concurrency of CONCURRENCIES) {
      const row = await measure(site, concurrency, executablePath);
      console.log(row);
      lines.push(row);
    }
  }
  const memory = await measureMemory();
  console.log(memory);
  if (!values.write) return;
  const document = new URL('../docs/benchmarks.md', import.meta.url);
  writeMarkedSection(
    document,
    'browser',
    [describeMachine({}), lines.join('\n'), memory].join('\n\n'),
  );
}

if (values.help) console.log(HELP);
else await main();
