import { parseArgs } from 'node:util';
import { hasMongodb, openBenchDatabase } from '../bench-database.ts';
import { type BenchPeers, startPeers } from '../bench-setup.ts';
import { measureCommandFigures, type NamedFigure } from '../command-figures.ts';
import {
  busyWarning,
  describeMachine,
  packageVersion,
  programVersion,
  untilIdle,
} from '../machine.ts';
import { writeMarkedSection } from '../marked-section.ts';
import type { Contender, CrawlFigure, Latency, StartOf } from './contender.ts';
import { redisProgram, startBare, startBullmq, startServiceContender } from './contenders.ts';
import { type Cell, type Figures, figureTables } from './figure-tables.ts';

// Measures how fast backlogs are crawled on each store, compared with the plain limit and BullMQ in the same run.

const HELP = `Usage: npm run bench [-- --quick] [--rounds 3] [--seconds 4] [--lead-in 1] [--warm-up 20000]
                        [--stores embedded,mongodb] [--write]

Pages a second from queue to storage and to a webhook at concurrency 20, 50 and 200; processor time; commands to MongoDB; push and
push-to-start latency. Measures the embedded store and MongoDB (MONGODB_URI, or the server that MONGOD names), compared with a bare loop of
requests and BullMQ on Redis (redis-server from PATH). Site, receiver, load, service and peers have a process each; durability, address
guard, leases and limits are on.

  --quick    one round of a second each at concurrency 20 and 200, to see that it runs
  --rounds   rounds, each in another order; figures are medians of them
  --seconds  about how long each measurement takes
  --lead-in  about how many seconds each contender crawls, unmeasured, before each measurement: while the others had their turn, V8 has
             given back memory and compiled code that a busy process keeps
  --warm-up  pages that each contender crawls to storage and to a webhook before its first round: a process that has just started takes up
             to 1.5 times the processor time, until V8 has compiled what runs often
  --stores   which stores are measured
  --write    puts the tables into docs/benchmarks.md
`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    'lead-in': { type: 'string', default: '1' },
    'warm-up': { type: 'string', default: '20000' },
    stores: { type: 'string', default: 'embedded,mongodb' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const WARM_UP_CONCURRENCY = 50;
const LEAST_PAGES = 400;
const MOST_PAGES = 60_000;
const START_TIMEOUT_MS = 60_000;

function number(
  name: 'rounds' | 'seconds' | 'lead-in' | 'warm-up',
  least: number,
  most: number,
): number {
  const value = Number(values[name]);
  if (value >= least && value <= most) return value;
  throw new Error(`--${name} must be a number from ${least} to ${most}`);
}

/** Looked at before anything starts, for a wrong one would end a run of minutes. */
const rounds = values.quick ? 1 : number('rounds', 1, 1_000);
const seconds = values.quick ? 1 : number('seconds', 0.1, 1_000);
const leadInSeconds = values.quick ? 0 : number('lead-in', 0, 1_000);
const warmUpPages = values.quick
  ? LEAST_PAGES
  : Math.round(number('warm-up', LEAST_PAGES, MOST_PAGES));

interface Peers {
  readonly site: string;
  readonly hook: string;
  readonly startOf: StartOf;
}

/** Waits for requests that the site reports, whether they have come or not. */
function watchStarts(peers: BenchPeers): StartOf {
  const seen = new Map<string, PromiseWithResolvers<number>>();
  const entry = (path: string): PromiseWithResolvers<number> => {
    const found = seen.get(path) ?? Promise.withResolvers<number>();
    seen.set(path, found);
    return found;
  };
  peers.onStart((path, at) => entry(path).resolve(at));
  return async (path) => {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error(`${path} was not asked for`)),
      START_TIMEOUT_MS,
    );
    try {
      return await Promise.race([entry(path).promise, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
}

const modes = ['storage', 'webhook'] as const;

/** Lets each contender crawl until its code is compiled; answers the pages a second of these cells. */
async function warmUp(
  contenders: readonly Contender[],
  { site, hook }: Peers,
): Promise<Map<string, number>> {
  const rates = new Map<string, number>();
  for (const contender of contenders) {
    for (const mode of modes) {
      const cell = { mode, concurrency: WARM_UP_CONCURRENCY };
      const key = keyOf(contender.name, cell);
      const { perSecond } = await contender.crawl({ ...cell, pages: warmUpPages, site, hook });
      rates.set(key, perSecond);
      console.log(`warm-up  ${key.padEnd(36)} ${perSecond.toFixed(0).padStart(7)}/s`);
    }
  }
  return rates;
}

/** Measures all cells in rounds; each round begins with another contender, and each measurement after a lead-in. */
async function measureCrawls(
  contenders: readonly Contender[],
  cells: readonly Cell[],
  { site, hook }: Peers,
  warmRates: ReadonlyMap<string, number>,
): Promise<Map<string, CrawlFigure[]>> {
  const sizes = new Map<string, number>();
  const figures = new Map<string, CrawlFigure[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, cell] of cells.entries()) {
      for (let turn = 0; turn < contenders.length; turn += 1) {
        const contender = contenders[(turn + round + at) % contenders.length];
        if (contender === undefined) continue;
        const key = keyOf(contender.name, cell);
        const warmCell = { ...cell, concurrency: WARM_UP_CONCURRENCY };
        const warmRate = warmRates.get(keyOf(contender.name, warmCell)) ?? 0;
        const pages = sizes.get(key) ?? pagesFor(warmRate * seconds);
        await untilIdle();
        if (leadInSeconds > 0) {
          const leadIn = pagesFor((pages / seconds) * leadInSeconds);
          await contender.crawl({ ...cell, pages: leadIn, site, hook });
        }
        const figure = await contender.crawl({ ...cell, pages, site, hook });
        sizes.set(key, pagesFor(figure.perSecond * seconds));
        figures.set(key, [...(figures.get(key) ?? []), figure]);
        console.log(
          `round ${round + 1}  ${key.padEnd(36)} ${figure.perSecond.toFixed(0).padStart(7)}/s  ${figure.cpuPerThousand.toFixed(2)} s CPU a thousand  (${pages} pages)`,
        );
      }
    }
  }
  return figures;
}

const pagesFor = (wanted: number): number =>
  Math.round(Math.min(Math.max(wanted, LEAST_PAGES), MOST_PAGES));

const keyOf = (contender: string, { mode, concurrency }: Cell): string =>
  `${contender} ${mode} ${concurrency}`;

async function measureLatencies(contenders: readonly Contender[], { site, startOf }: Peers) {
  const pushes = new Map<string, Latency>();
  const starts = new Map<string, Latency>();
  const scale = values.quick ? 0.1 : 1;
  for (const contender of contenders) {
    await untilIdle();
    const push = await contender.pushLatency?.(5_000 * scale);
    if (push !== undefined) pushes.set(contender.name, push);
    await untilIdle();
    const start = await contender.startLatency?.(100 * scale, site, startOf);
    if (start !== undefined) starts.set(contender.name, start);
  }
  return { pushes, starts };
}

async function main(): Promise<void> {
  const warning = busyWarning();
  if (warning !== undefined) console.log(`WARNING: ${warning}`);
  const stores = new Set(values.stores.split(','));
  const versions: Record<string, string> = { undici: packageVersion('undici') };
  await using open = new AsyncDisposableStack();
  const sitePeers = open.use(await startPeers('dispatch/quick-peers.ts'));
  const hookPeers = open.use(await startPeers('dispatch/quick-peers.ts'));
  const peers: Peers = {
    site: sitePeers.sites[0] ?? '',
    hook: hookPeers.sites[0] ?? '',
    startOf: watchStarts(sitePeers),
  };
  const contenders: Contender[] = [open.use(startBare())];
  if (stores.has('embedded')) {
    contenders.push(open.use(await startServiceContender('embedded', undefined)));
  }
  if (stores.has('mongodb') && hasMongodb()) {
    const database = open.use(await openBenchDatabase());
    versions['MongoDB server'] = database.version;
    contenders.push(open.use(await startServiceContender('MongoDB', database.uri)));
  } else if (stores.has('mongodb')) {
    console.log(
      'LEFT OUT: MongoDB, for there is neither MONGODB_URI, MONGOD nor a mongod on PATH.',
    );
  }
  const redis = redisProgram();
  if (redis === undefined) {
    console.log('LEFT OUT: BullMQ, for there is no redis-server on PATH, and with it every ratio.');
  } else {
    versions.Redis = programVersion(redis, /v=(\S+)/);
    versions.BullMQ = packageVersion('bullmq');
    contenders.push(open.use(await startBullmq(redis)));
  }
  const concurrencies = values.quick ? [20, 200] : [20, 50, 200];
  const cells = modes.flatMap((mode) =>
    concurrencies.map((concurrency) => ({ mode, concurrency })),
  );
  const warmRates = await warmUp(contenders, peers);
  const crawls = await measureCrawls(contenders, cells, peers, warmRates);
  const latencies = await measureLatencies(contenders, peers);
  await open.disposeAsync();
  const figures: Figures = {
    cells,
    contenders: contenders.map(({ name }) => name),
    crawls: (contender, cell) => crawls.get(keyOf(contender, cell)) ?? [],
    ...latencies,
    commands: stores.has('mongodb') && hasMongodb() ? await measureCommands() : [],
  };
  const left = redis === undefined ? 'BullMQ was left out: there was no redis-server.\n\n' : '';
  const busy = warning === undefined ? '' : `${warning}\n\n`;
  const section = `${describeMachine(versions)} Redis syncs its log once a second, the service before each answer.\n\n${busy}${left}${figureTables(figures)}`;
  console.log(`\n${section}`);
  if (values.write) {
    writeMarkedSection(new URL('../../docs/benchmarks.md', import.meta.url), 'bench', section);
  }
}

async function measureCommands(): Promise<NamedFigure[]> {
  await using database = await openBenchDatabase();
  return await Array.fromAsync(measureCommandFigures(database.uri, values.quick ? 0.2 : 1));
}

if (values.help) console.log(HELP);
else await main();
