import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { call, startService, TOKEN } from './bench-setup.ts';
import { pages } from './page-text.ts';

// Measures how hosts share a crawler of 20 slots: the pages a second of 300 quick hosts alone, after
// a backlog of a slow host, of a dead one and of one that answers 429, and those of one host alone.
// Hosts are addresses of 127.0.0.0/8. `--against DIR` runs another checkout in turn with this
// one, `--only NAME` one scenario, and `--rounds N` repeats them.

const QUICK_HOSTS = 300;
const QUICK_URLS = 3_000;
const OTHER_URLS = 600;
const CONCURRENCY = 20;
const LONGEST_MS = 90_000;
/** URLs of one batch of pushes. */
const BATCH = 1_000;

type Scenario = 'quick' | 'slow' | 'dead' | 'limited' | 'one';
const SCENARIOS: Readonly<Record<Scenario, string>> = {
  one: 'one host, 3,000 pages',
  quick: '300 quick hosts, 3,000 pages',
  slow: 'the same after 600 URLs of a host that takes 1 s',
  dead: 'the same after 600 URLs of a host that never answers (10 s)',
  limited: 'the same after 600 URLs of a host that answers 429',
};

interface Measured {
  readonly pagesPerSecond: number;
  readonly requestsAtOther: number;
}

/** A site that has every address of 127.0.0.0/8 and counts the pages of quick hosts. */
async function startSite() {
  const counts = { quick: 0, other: 0, lastAt: 0 };
  const server = createServer((request, response) => {
    const { url = '/' } = request;
    if (url.startsWith('/quick')) {
      counts.quick += 1;
      counts.lastAt = performance.now();
      response.setHeader('content-type', 'text/html').end(pages[counts.quick % pages.length]);
      return;
    }
    counts.other += 1;
    if (url.startsWith('/slow')) setTimeout(() => response.end('<p>late</p>'), 1_000);
    else if (url.startsWith('/limited')) response.writeHead(429).end();
    // Otherwise it never answers.
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    counts,
    urlOf: (host: number, path: string): string =>
      `http://127.0.${1 + Math.floor(host / 250)}.${1 + (host % 250)}:${port}${path}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function measure(folder: string | undefined, scenario: Scenario): Promise<Measured> {
  const site = await startSite();
  const env = { NETWORK_ALLOW: '127.0.0.0/8', CRAWL_TIMEOUT_SECONDS: '10' };
  try {
    await using service = await startService(env, folder);
    const crawler = `${service.url}/crawler/${TOKEN}/hosts`;
    await call(`${service.url}/crawler/${TOKEN}`, 'POST', {
      name: 'hosts',
      concurrency: CONCURRENCY,
    });
    await call(`${crawler}/pause`, 'POST');
    const hosts = scenario === 'one' ? 1 : QUICK_HOSTS;
    const others = scenario === 'one' || scenario === 'quick' ? 0 : OTHER_URLS;
    const urls = [
      ...Array.from({ length: others }, (_, n) => site.urlOf(999, `/${scenario}/${n}`)),
      ...Array.from({ length: QUICK_URLS }, (_, n) => site.urlOf(n % hosts, `/quick/${n}`)),
    ];
    for (let at = 0; at < urls.length; at += BATCH) {
      const items = urls.slice(at, at + BATCH).map((url) => ({ url }));
      await call(`${crawler}/push_batch`, 'POST', { items });
    }
    const startedAt = performance.now();
    await call(`${crawler}/unpause`, 'POST');
    while (site.counts.quick < QUICK_URLS && performance.now() - startedAt < LONGEST_MS) {
      await wait(20);
    }
    const seconds = (site.counts.lastAt - startedAt) / 1_000;
    return {
      pagesPerSecond: site.counts.quick === 0 ? 0 : site.counts.quick / seconds,
      requestsAtOther: site.counts.other,
    };
  } finally {
    site.close();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      against: { type: 'string' },
      rounds: { type: 'string', default: '1' },
      only: { type: 'string' },
    },
  });
  const contenders = [undefined, ...(values.against === undefined ? [] : [values.against])];
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [scenario, title] of Object.entries(SCENARIOS) as [Scenario, string][]) {
      if (values.only !== undefined && values.only !== scenario) continue;
      console.log(title);
      for (const folder of contenders) {
        const { pagesPerSecond, requestsAtOther } = await measure(folder, scenario);
        const name = folder ?? 'this checkout';
        console.log(
          `  ${name}: ${pagesPerSecond.toFixed(1)} quick pages/s, ${requestsAtOther} requests at the other host`,
        );
      }
    }
  }
}

await main();
