import { setTimeout as wait } from 'node:timers/promises';
import { call, report, requestsPerSecond, startBench, TOKEN } from './bench-setup.ts';

// Measures pages per second from queue to storage and to a webhook, and what plain undici reaches
// at the same concurrency in the same run.

const PAGES = 10_000;
const CONCURRENCY = 50;
const BATCH = 1_000;

interface Details {
  readonly activity: { readonly completed: number; readonly deliveries_pending: number };
}

async function crawlAll(
  service: string,
  peers: string,
  name: string,
  hook: boolean,
): Promise<number> {
  const path = `${service}/crawler/${TOKEN}/${name}`;
  const callback = hook ? { callback_url: `${peers}/hook` } : {};
  await call(`${service}/crawler/${TOKEN}`, 'POST', {
    name,
    concurrency: CONCURRENCY,
    ...callback,
  });
  await call(`${path}/pause`, 'POST');
  for (let from = 0; from < PAGES; from += BATCH) {
    const items = Array.from({ length: BATCH }, (_, n) => ({ url: `${peers}/page/${from + n}` }));
    await call(`${path}/push_batch`, 'POST', { items });
  }
  const startedAt = performance.now();
  await call(`${path}/unpause`, 'POST');
  for (;;) {
    const { activity } = await call<Details>(path, 'GET');
    if (activity.completed === PAGES && activity.deliveries_pending === 0) break;
    await wait(20);
  }
  return PAGES / ((performance.now() - startedAt) / 1_000);
}

async function main(): Promise<void> {
  await using bench = await startBench();
  const { service, peers } = bench;
  const toPath = (n: number): string => `/page/${n}`;
  await requestsPerSecond(peers, toPath, PAGES / 4, CONCURRENCY);
  const bare = await requestsPerSecond(peers, toPath, PAGES, CONCURRENCY);
  report(`bare undici, ${CONCURRENCY} at once`, bare);
  report('crawled into storage', await crawlAll(service, peers, 'store', false), bare);
  report('crawled and delivered to a webhook', await crawlAll(service, peers, 'hook', true), bare);
}

await main();
