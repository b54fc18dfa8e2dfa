import { cp } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { MongoClient } from 'mongodb';
import { describeMachine } from '../bench/machine.ts';
import { writeMarkedSection } from '../bench/marked-section.ts';
import { createRid } from '../src/domain/rid.ts';
import { DISTURBANCES, type Disturbance, USUAL_DISTURBANCES } from '../test/support/chaos/fleet.ts';
import { type ChaosReport, runChaos } from '../test/support/chaos/run-chaos.ts';
import { IDLE_CAUSES } from '../test/support/chaos/slot-usage.ts';
import { mongodProgram, startMongod } from '../test/support/mongod.ts';
import { temporaryFolder } from '../test/support/temporary-folder.ts';

const HELP = `Usage: npm run chaos -- [--minutes 2] [--seed N] [--processes 4] [--store mongodb|embedded] [--slots 90] [--only stop,kill] [--busy 3] [--write] [--keep FOLDER]

Runs service processes under load on a site and a webhook of its own, and kills, drains, stops and continues them at random, and their database too. Then lets them end their work, and strikes the balance: every rid has one end, the counters add up, no crawler had more crawls
at once than its limit. Exits with 1 when something is wrong.

  --minutes    how long they are disturbed (2); up to five minutes more until all work has ended
  --seed       the same seed gives the same disturbances; by default a new one, which is printed
  --processes  processes that share the work (4; on the embedded database it is always 1)
  --store      mongodb (if MONGODB_URI, MONGOD or a mongod on PATH is there) or embedded; a database that MONGODB_URI names is not killed
  --only       what is done to them, of kill, drain, stop and database (by default these), clock and network. With clock each process has a wrong one; with network the way to MongoDB delays, stalls and resets connections
  --busy       threads that keep the machine's processors busy besides (0)
  --slots      fails when the widest crawler uses less of the slots that it has URLs for than that many percent while the fleet is whole
  --write      puts the result into docs/benchmarks.md
  --keep       copies the data to that folder when something is wrong
`;

const BY_DEFAULT = USUAL_DISTURBANCES.join();

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String((Date.now() % 2 ** 31) + 1) },
    processes: { type: 'string', default: '4' },
    store: { type: 'string' },
    slots: { type: 'string' },
    only: { type: 'string', default: BY_DEFAULT },
    busy: { type: 'string', default: '0' },
    write: { type: 'boolean', default: false },
    keep: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function number(
  name: 'minutes' | 'seed' | 'processes' | 'slots' | 'busy',
  most: number,
  least = Number.MIN_VALUE,
): number {
  const value = Number(values[name]);
  if (!(value >= least && value <= most)) {
    throw new Error(`--${name} must be a number up to ${most}`);
  }
  return value;
}

function disturbances(): readonly Disturbance[] {
  const given = values.only.split(',');
  const found = DISTURBANCES.filter((kind) => given.includes(kind));
  if (found.length < given.length) throw new Error(`--only has some of ${DISTURBANCES.join(', ')}`);
  return found;
}

/** Threads that do nothing, until they are disposed of: those of the processes wait for a core. */
function keepBusy(count: number): AsyncDisposable {
  const threads = Array.from({ length: count }, () => new Worker('for (;;);', { eval: true }));
  return {
    [Symbol.asyncDispose]: async () =>
      void (await Promise.all(threads.map((each) => each.terminate()))),
  };
}

async function dropDatabase(uri: string): Promise<void> {
  await using client = await MongoClient.connect(uri);
  await client.db().dropDatabase();
}

/** A place for the data of a run. */
async function openStore(store: string) {
  if (store === 'embedded') {
    const folder = await temporaryFolder();
    return {
      env: { DATA_DIR: folder.path },
      database: undefined,
      data: folder.path,
      [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
    };
  }
  if (store !== 'mongodb') throw new Error('--store must be mongodb or embedded');
  const given = process.env.MONGODB_URI ?? '';
  const program = mongodProgram();
  if (given === '' && program === undefined) {
    throw new Error('there is no MongoDB: set MONGODB_URI, or MONGOD to the program of a server');
  }
  const database = given === '' ? await startMongod(program ?? '') : undefined;
  if (database === undefined) console.log('The database of MONGODB_URI is not killed.');
  const url = new URL(database?.uri ?? given);
  url.pathname = `/chaos_${createRid(new Date())}`;
  return {
    env: { MONGODB_URI: url.href },
    database,
    data: database?.folder,
    async [Symbol.asyncDispose]() {
      if (database === undefined) await dropDatabase(url.href);
      else await database[Symbol.asyncDispose]();
    },
  };
}

/** The report as Markdown. */
function describe(title: string, report: ChaosReport): string {
  const { kill, drain, stop, database, clock, network } = report.disturbances;
  const outage =
    database > 0 ? ` (unavailable for ${report.longestOutage.toFixed(0)} s at most)` : '';
  const crashes =
    report.crashes.length > 0
      ? ` The database ended by itself ${report.crashes.length} times and was started again.`
      : '';
  const rows = report.rows.map(
    ({ crawler, most, usage, acknowledged, again, pushedAgain, fromStorage, longestWait }) =>
      [
        '',
        `${crawler.name}, ${crawler.delivery}`,
        String(crawler.concurrency),
        String(most),
        percent(usage?.share),
        percent(usage?.shareOfAll),
        String(acknowledged),
        String(again),
        String(pushedAgain),
        String(fromStorage),
        `${longestWait.toFixed(1)} s`,
        '',
      ]
        .join(' | ')
        .trim(),
  );
  return [
    `${title}: ${kill} killed (-9), ${drain} drained (SIGTERM), ${stop} stopped and continued.`,
    `Database killed: ${database} times${outage}. Clocks set: ${clock} times. Network disturbed: ${network} times.${crashes}`,
    [
      '| crawler | limit | most at once | slots used | of all slots | URLs | crawled again | failed, pushed again | from storage | longest wait |',
      '|---|---|---|---|---|---|---|---|---|---|',
      ...rows,
    ].join('\n'),
    ...idleTable(report),
    `Delivered again: ${report.deliveredAgain}. The use of slots was measured for ${report.measuredSeconds.toFixed(0)} s in which the fleet was whole.`,
    report.violations.length === 0
      ? 'Every URL has one end, the counters add up, every limit was kept.'
      : `**${report.violations.length} violations.**`,
  ].join('\n\n');
}

function percent(part: number | undefined): string {
  return part === undefined ? '-' : `${(part * 100).toFixed(0)} %`;
}

/** Where the slots went that were not used. */
function idleTable({ rows }: ChaosReport): string[] {
  const known = rows.filter(({ usage }) => Object.keys(usage?.idle ?? {}).length > 0);
  if (known.length === 0) return [];
  const lines = known.map(({ crawler, usage }) => {
    const parts = IDLE_CAUSES.map((cause) => percent(usage?.idle[cause]));
    return `| ${[crawler.name, ...parts].join(' | ')} |`;
  });
  return [
    'Slots are used while the fleet is whole of those in use and as many more as URLs wait. Of these, not used, and held by:',
    [
      '| crawler | a process that has ended | nobody: no lead | a helper that gives them back | a process that runs |',
      '|---|---|---|---|---|',
      ...lines,
    ].join('\n'),
  ];
}

/** What is wrong, with the share of slots that was asked for. */
function violationsOf(report: ChaosReport): string[] {
  const [widest] = report.rows.toSorted(
    (left, right) => right.crawler.concurrency - left.crawler.concurrency,
  );
  const least = values.slots === undefined ? 0 : number('slots', 100) / 100;
  const share = widest?.usage?.share ?? 0;
  if (share >= least) return [...report.violations];
  const used = percent(share);
  return [...report.violations, `${widest?.crawler.name}: ${used} of its slots were used`];
}

async function main(): Promise<void> {
  const seconds = number('minutes', 24 * 60) * 60;
  const seed = number('seed', 2 ** 32);
  const hasDatabase = (process.env.MONGODB_URI ?? '') !== '' || mongodProgram() !== undefined;
  const kind = values.store ?? (hasDatabase ? 'mongodb' : 'embedded');
  const processes = kind === 'embedded' ? 1 : number('processes', 64);
  const only = disturbances();
  const busy = number('busy', 64, 0);
  const title = [
    `${kind}, ${processes} ${processes === 1 ? 'process' : 'processes'}, ${seconds} s, --seed ${seed}`,
    ...(values.only === BY_DEFAULT ? [] : [`--only ${only.join()}`]),
    ...(busy > 0 ? [`--busy ${busy}`] : []),
  ].join(' ');
  console.log(title);
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort(new Error('interrupted'));
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  await using store = await openStore(kind);
  const { env, database } = store;
  const { signal } = interrupted;
  await using _busy = keepBusy(busy);
  const report = await runChaos({ seconds, seed, processes, only, env, database, signal });
  const text = describe(title, report);
  console.log(`\n${text}`);
  if (values.write) {
    const document = new URL('../docs/benchmarks.md', import.meta.url);
    writeMarkedSection(document, 'chaos', `${describeMachine({})}\n\n${text}`);
  }
  const violations = violationsOf(report);
  if (violations.length === 0) return;
  console.log(`Logs of the processes:\n${report.log}`);
  for (const violation of violations.slice(0, 50)) console.log(`VIOLATION: ${violation}`);
  if (values.keep !== undefined && store.data !== undefined) {
    await database?.stop();
    await cp(store.data, values.keep, { recursive: true });
    console.log(`The data are in ${values.keep}.`);
  }
  process.exitCode = 1;
}

if (values.help) console.log(HELP);
else await main();
