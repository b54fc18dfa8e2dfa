import { setTimeout as wait } from 'node:timers/promises';
import { type Bench, call, report, requestsPerSecond, startBench, TOKEN } from './bench-setup.ts';

// Measures pages per second from queue to storage, from four sites, with 1, 2 and 4 crawl threads,
// and the processor time that each page costs the main thread.

const PAGES = 20_000;
const CONCURRENCY = 200;
const BATCH = 1_000;

interface Details {
  readonly activity: { readonly completed: number };
}

async function crawlAll({ service, sites, cpuSeconds }: Bench) {
  const path = `${service}/crawler/${TOKEN}/store`;
  await call(`${service}/crawler/${TOKEN}`, 'POST', { name: 'store', concurrency: CONCURRENCY });
  await call(`${path}/pause`, 'POST');
  for (let from = 0; from < PAGES; from += BATCH) {
    const items = Array.from({ length: BATCH }, (_, n) => ({
      url: `${sites[n % sites.length] ?? ''}/page/${from + n}`,
    }));
    await call(`${path}/push_batch`, 'POST', { items });
  }
  const before = cpuSeconds();
  const startedAt = performance.now();
  await call(`${path}/unpause`, 'POST');
  for (;;) {
    const { activity } = await call<Details>(path, 'GET');
    if (activity.completed === PAGES) break;
    await wait(20);
  }
  const perSecond = PAGES / ((performance.now() - startedAt) / 1_000);
  const after = cpuSeconds();
  return { perSecond, main: after.main - before.main, all: after.all - before.all };
}

for (const threads of [1, 2, 4]) {
  await using bench = await startBench({ CRAWL_THREADS: String(threads) });
  const bare = await requestsPerSecond(bench.peers, (n) => `/page/${n}`, PAGES, CONCURRENCY);
  if (threads === 1) report(`bare undici, ${CONCURRENCY} at once`, bare);
  const { perSecond, main, all } = await crawlAll(bench);
  report(`crawled into storage, CRAWL_THREADS=${threads}`, perSecond, bare);
  const microseconds = (seconds: number): string => `${Math.round((seconds / PAGES) * 1e6)} µs`;
  console.log(
    `  processor time of a page: main thread ${microseconds(main)}, all ${microseconds(all)}`,
  );
}
