import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openBenchDatabase } from './bench-database.ts';
import { call, startService, TOKEN } from './bench-setup.ts';
import { writeMarkedSection } from './marked-section.ts';
import { pages } from './page-text.ts';

// Measures how hosts share a crawler of 20 slots. It measures the pages a second of 300 quick hosts
// alone, and those of one host alone. It measures them also after a backlog of a slow host, of a
// dead one and of one that answers 429. Then 1,000 quick hosts alone, with politeness, and after
// 100,000 URLs of one polite host, a dead one and one that answers 429. Hosts are addresses of
// 127.0.0.0/8. `--store mongodb` measures on MongoDB. `--against DIR` runs another checkout in turn
// with this one, `--only NAME` one scenario, `--rounds N` repeats them, and `--write` puts the
// medians into docs/benchmarks.md.

const QUICK_URLS = 3_000;
const CONCURRENCY = 20;
const LONGEST_MS = 90_000;
/** URLs of one batch of pushes. */
const BATCH = 1_000;

interface Scenario {
  readonly title: string;
  readonly hosts: number;
  /** URLs that are pushed before those of the quick hosts: the path, and how many. */
  readonly before?: Readonly<Record<string, number>>;
  readonly politeness?: object;
}

const POLITE = { max_per_host: 2, delay_ms: 20, robots_txt: false };
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  one: { title: 'one host, 3,000 pages', hosts: 1 },
  politeOne: {
    title: 'the same with ten requests at once',
    hosts: 1,
    politeness: { max_per_host: 10, delay_ms: 0, robots_txt: false },
  },
  quick: { title: '300 quick hosts, 3,000 pages', hosts: 300 },
  slow: {
    title: 'the same after 600 URLs of a host that takes 1 s',
    hosts: 300,
    before: { slow: 600 },
  },
  dead: {
    title: 'the same after 600 URLs of a host that never answers (10 s)',
    hosts: 300,
    before: { dead: 600 },
  },
  limited: {
    title: 'the same after 600 URLs of a host that answers 429',
    hosts: 300,
    before: { limited: 600 },
  },
  thousand: { title: '1,000 quick hosts, 3,000 pages', hosts: 1_000 },
  polite: { title: '1,000 quick hosts with politeness', hosts: 1_000, politeness: POLITE },
  mixed: {
    title: 'the same after 100,000 URLs of one host, 300 of a dead one and 300 of one with 429',
    hosts: 1_000,
    before: { busy: 100_000, dead: 300, limited: 300 },
    politeness: POLITE,
  },
};

interface Measured {
  readonly pagesPerSecond: number;
  readonly requestsAtOther: number;
  /** Calls of the store that write, for each page that was crawled. */
  readonly writesPerPage: number;
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
    else if (url.startsWith('/busy')) response.end('<p>page</p>');
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

/** How many turns the service has written. */
async function writesOf(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const [, count = '0'] =
    /store_call[a-z_]*_count\{[^}]*"queue\.turn"[^}]*\} (\d+)/.exec(text) ?? [];
  return Number(count);
}

async function measure(
  folder: string | undefined,
  scenario: Scenario,
  store: string,
): Promise<Measured> {
  const site = await startSite();
  await using database = store === 'mongodb' ? await openBenchDatabase() : undefined;
  const env = {
    NETWORK_ALLOW: '127.0.0.0/8',
    CRAWL_TIMEOUT_SECONDS: '10',
    MONGODB_URI: database?.uri ?? '',
  };
  try {
    await using service = await startService(env, folder);
    const crawler = `${service.url}/crawler/${TOKEN}/hosts`;
    const { hosts, before = {}, politeness } = scenario;
    await call(`${service.url}/crawler/${TOKEN}`, 'POST', {
      name: 'hosts',
      concurrency: CONCURRENCY,
      ...(politeness === undefined ? {} : { politeness }),
    });
    await call(`${crawler}/pause`, 'POST');
    const others = Object.entries(before).flatMap(([path, count], at) =>
      Array.from({ length: count }, (_, n) => site.urlOf(5_000 + at, `/${path}/${n}`)),
    );
    const quick = Array.from({ length: QUICK_URLS }, (_, n) =>
      site.urlOf(n % hosts, `/quick/${n}`),
    );
    const urls = [...others, ...quick];
    for (let at = 0; at < urls.length; at += BATCH) {
      const items = urls.slice(at, at + BATCH).map((url) => ({ url }));
      await call(`${crawler}/push_batch`, 'POST', { items });
    }
    const writesBefore = await writesOf(service.url);
    const startedAt = performance.now();
    await call(`${crawler}/unpause`, 'POST');
    while (site.counts.quick < QUICK_URLS && performance.now() - startedAt < LONGEST_MS) {
      await wait(20);
    }
    const seconds = (site.counts.lastAt - startedAt) / 1_000;
    const writes = (await writesOf(service.url)) - writesBefore;
    return {
      writesPerPage: writes / (site.counts.quick + site.counts.other),
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
      store: { type: 'string', default: 'embedded' },
      write: { type: 'boolean', default: false },
    },
  });
  const contenders = [undefined, ...(values.against === undefined ? [] : [values.against])];
  const measurements = new Map<string, Measured[]>();
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [name, scenario] of Object.entries(SCENARIOS)) {
      if (values.only !== undefined && values.only !== name) continue;
      console.log(scenario.title);
      for (const folder of contenders) {
        const measured = await measure(folder, scenario, values.store);
        if (folder === undefined) {
          measurements.set(name, [...(measurements.get(name) ?? []), measured]);
        }
        const { pagesPerSecond, requestsAtOther, writesPerPage } = measured;
        console.log(
          `  ${folder ?? 'this checkout'}: ${pagesPerSecond.toFixed(1)} quick pages/s, ${requestsAtOther} requests at other hosts, ${writesPerPage.toFixed(3)} turns a page`,
        );
      }
    }
  }
  if (values.write) write(measurements, values.store);
}

/** Puts the medians into the document. */
function write(measurements: ReadonlyMap<string, readonly Measured[]>, store: string): void {
  const rows = [...measurements].map(([name, all]) => {
    const of = (key: keyof Measured): number => median(all.map((each) => each[key]));
    const figures = [of('pagesPerSecond').toFixed(0), of('requestsAtOther').toFixed(0)];
    return `| ${[SCENARIOS[name]?.title, ...figures, of('writesPerPage').toFixed(3)].join(' | ')} |`;
  });
  const head = '| | pages a second of the quick hosts | requests at the others | turns a page |';
  const file = new URL('../docs/benchmarks.md', import.meta.url);
  writeMarkedSection(
    file,
    store === 'mongodb' ? 'hosts-mongodb' : 'hosts',
    [head, '|---|---|---|---|', ...rows].join('\n'),
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

await main();
