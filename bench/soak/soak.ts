import { writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openBenchDatabase } from '../bench-database.ts';
import { startPeers, startService } from '../bench-setup.ts';
import { busyWarning, describeMachine } from '../machine.ts';
import { writeMarkedSection } from '../marked-section.ts';
import { soakFigure } from './soak-figure.ts';
import { createSoakLoad } from './soak-load.ts';
import { type Series, trendOf } from './trend.ts';

// Runs the service at half of the load that it can take, and judges whether memory, handles and the
// lag of the event loop stay flat.

const HELP = `Usage: npm run soak -- [--minutes 10] [--store embedded|mongodb] [--rate N] [--write]

Measures how many pages a second the service crawls, into storage and to a webhook together. Then pushes half as many for the given time,
and samples its memory, file descriptors and event-loop lag every second. Exits with 1 when one of them grows, a page fails, or the
queue grows. A run of less than five minutes is a trial: caches still fill.

  --minutes  how long (10)
  --store    embedded, or mongodb (MONGODB_URI, or the server that MONGOD names)
  --rate     URLs a second instead of half of what was measured
  --write    writes docs/soak-STORE.svg, and the figures into docs/benchmarks.md
`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    store: { type: 'string', default: 'embedded' },
    rate: { type: 'string' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const CALIBRATION_PAGES = 4_000;
const SAMPLE_MS = 1_000;
/** More seconds of the load than this in the queue mean that it is no half load. */
const MOST_BACKLOG_SECONDS = 10;

/** What is sampled: a metric, and what of it counts as flat. */
const MEASURED = [
  {
    name: 'Resident memory',
    unit: 'MB',
    metric: 'process_resident_memory_bytes',
    factor: 1e-6,
    allowed: { share: 0.08, amount: 15 },
  },
  {
    name: 'Heap in use (judged by what collections leave)',
    unit: 'MB',
    metric: 'nodejs_heap_size_used_bytes',
    factor: 1e-6,
    allowed: { share: 0.15, amount: 8 },
    byFloor: true,
  },
  {
    name: 'File descriptors',
    unit: 'open',
    metric: 'process_open_fds',
    factor: 1,
    allowed: { share: 0.05, amount: 5 },
  },
  {
    name: 'Event-loop lag, 99th percentile of a second',
    unit: 'ms',
    metric: 'nodejs_eventloop_lag_p99_seconds',
    factor: 1_000,
    allowed: { share: 0.3, amount: 5 },
  },
] as const;

async function readMetrics(service: string): Promise<readonly number[]> {
  const text = await (await fetch(`${service}/metrics`)).text();
  return MEASURED.map(({ metric, factor }) => {
    const found = new RegExp(`^${metric} (\\S+)$`, 'm').exec(text)?.[1];
    if (found === undefined) throw new Error(`the service does not measure ${metric}`);
    return Number(found) * factor;
  });
}

/** Opens the store's database, if it has one of its own. */
async function openStore() {
  if (values.store === 'embedded') return undefined;
  if (values.store === 'mongodb') return openBenchDatabase();
  throw new Error('--store must be embedded or mongodb');
}

async function main(): Promise<void> {
  const minutes = Number(values.minutes);
  if (!(minutes >= 0.5 && minutes <= 24 * 60)) throw new Error('--minutes must be 0.5 to 1,440');
  const warning = busyWarning();
  if (warning !== undefined) console.log(`WARNING: ${warning}`);
  await using database = await openStore();
  await using sites = await startPeers();
  await using hooks = await startPeers();
  await using service = await startService({ MONGODB_URI: database?.uri ?? '' });
  const load = await createSoakLoad(service.url, sites.sites[0] ?? '', hooks.sites[0] ?? '');
  await load.calibrate(CALIBRATION_PAGES / 4);
  const most = await load.calibrate(CALIBRATION_PAGES);
  const rate = values.rate === undefined ? Math.round(most / 2) : Number(values.rate);
  if (!(rate > 0)) throw new Error('--rate must be a number of URLs a second');
  console.log(`${Math.round(most)} pages a second at most; ${rate} a second for ${minutes} min`);

  const samples: { readonly seconds: number; readonly values: readonly number[] }[] = [];
  const faults: string[] = [];
  const pushing = load.start(rate);
  const startedAt = performance.now();
  for (let shownAt = 0; ; ) {
    await wait(SAMPLE_MS);
    const seconds = (performance.now() - startedAt) / 1_000;
    const values = await readMetrics(service.url);
    samples.push({ seconds, values });
    if (seconds - shownAt > 30) {
      shownAt = seconds;
      const shown = MEASURED.map(({ unit }, at) => `${values[at]?.toFixed(1)} ${unit}`);
      console.log(`${seconds.toFixed(0).padStart(5)} s  ${shown.join('  ')}`);
    }
    if (seconds >= minutes * 60) break;
  }
  const backlog = await load.backlog();
  if (backlog > rate * MOST_BACKLOG_SECONDS)
    faults.push(`${backlog} URLs wait: the load is too much`);
  await pushing.stop();
  const failed = await load.failed();
  if (failed > 0) faults.push(`${failed} pages failed`);

  const series = MEASURED.map(
    ({ metric: _metric, factor: _factor, ...judged }, at): Series => ({
      ...judged,
      points: samples.map(({ seconds, values }) => [seconds, values[at] ?? Number.NaN]),
    }),
  );
  const rows = series.map((each) => {
    const { median, growth, allowed, isFlat } = trendOf(each);
    if (!isFlat) faults.push(`${each.name} grew by ${growth.toFixed(1)} ${each.unit}`);
    const cells = [median, growth, allowed].map((value) => `${value.toFixed(1)} ${each.unit}`);
    return `| ${each.name} | ${cells.join(' | ')} |`;
  });
  const section = [
    `Half load on ${values.store}: ${rate} URLs a second for ${minutes} minutes, of ${Math.round(most)} that it takes.`,
    describeMachine(database === undefined ? {} : { 'MongoDB server': database.version }),
    ...(warning === undefined ? [] : [warning]),
    `| | median | growth after the warm-up | counts as flat up to |\n|---|---|---|---|\n${rows.join('\n')}`,
    ...faults.map((fault) => `**Not flat**: ${fault}.`),
  ];
  console.log(`\n${section.join('\n\n')}`);
  if (values.write) {
    const name = `soak-${values.store}`;
    const title = `Half load on ${values.store}, ${rate} URLs a second`;
    writeFileSync(new URL(`../../docs/${name}.svg`, import.meta.url), soakFigure(title, series));
    const picture = `![${title}](${name}.svg)`;
    const document = new URL('../../docs/benchmarks.md', import.meta.url);
    writeMarkedSection(document, name, [...section, picture].join('\n\n'));
  }
  if (faults.length > 0) process.exitCode = 1;
}

if (values.help) console.log(HELP);
else await main();
