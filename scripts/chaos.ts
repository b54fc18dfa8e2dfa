import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { createRid } from '../src/domain/rid.ts';
import { type ChaosReport, runChaos } from '../test/support/chaos/run-chaos.ts';
import { mongodProgram, startMongod } from '../test/support/mongod.ts';
import { temporaryFolder } from '../test/support/temporary-folder.ts';

const HELP = `Usage: npm run chaos -- [--minutes 2] [--seed N] [--processes 4] [--store mongodb|embedded]

Runs service processes under load on a site and a webhook of its own, and kills, drains, stops and continues them at random, and their
database too; then lets them end their work, and strikes the balance: every rid has one end, the counters add up, no crawler had more crawls
at once than its limit. Exits with 1 when something is wrong.

  --minutes    how long they are disturbed (2); up to five minutes more until all work has ended
  --seed       the same seed gives the same disturbances; by default a new one, which is printed
  --processes  processes that share the work (4; on the embedded database it is always 1)
  --store      mongodb (if MONGODB_URI, MONGOD or a mongod on PATH is there) or embedded; a database that MONGODB_URI names is not killed
`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String((Date.now() % 2 ** 31) + 1) },
    processes: { type: 'string', default: '4' },
    store: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function number(name: 'minutes' | 'seed' | 'processes', most: number): number {
  const value = Number(values[name]);
  if (!(value > 0 && value <= most)) throw new Error(`--${name} must be a number up to ${most}`);
  return value;
}

/** A place for the data of a run. */
async function openStore(store: string) {
  if (store === 'embedded') {
    const folder = await temporaryFolder();
    return {
      env: { DATA_DIR: folder.path },
      database: undefined,
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
    [Symbol.asyncDispose]: async () => database?.[Symbol.asyncDispose](),
  };
}

function print(report: ChaosReport): void {
  const { kill, drain, stop, database } = report.disturbances;
  console.log(
    `${kill} killed (-9), ${drain} drained (SIGTERM), ${stop} stopped and continued, database killed ${database} times`,
  );
  console.log('crawler   limit  most at once  slots used   URLs  crawled again  longest wait');
  for (const row of report.rows) {
    const { name, concurrency } = row.crawler;
    const used = row.usage === undefined ? '-' : `${(row.usage * 100).toFixed(0)} %`;
    console.log(
      [
        name.padEnd(8),
        String(concurrency).padStart(6),
        String(row.most).padStart(13),
        used.padStart(11),
        String(row.acknowledged).padStart(6),
        String(row.again).padStart(14),
        `${row.longestWait.toFixed(1)} s`.padStart(13),
      ].join(' '),
    );
  }
  console.log(
    `Delivered again: ${report.deliveredAgain}. Slots were measured for ${report.measuredSeconds.toFixed(0)} s while the fleet was whole.`,
  );
  if (report.violations.length === 0) {
    console.log('Every URL has one end, the counters add up, every limit was kept.');
    return;
  }
  console.log(`Logs of the processes:\n${report.log}`);
  for (const violation of report.violations.slice(0, 50)) console.log(`VIOLATION: ${violation}`);
  process.exitCode = 1;
}

async function main(): Promise<void> {
  const seconds = number('minutes', 24 * 60) * 60;
  const seed = number('seed', 2 ** 32);
  const hasDatabase = (process.env.MONGODB_URI ?? '') !== '' || mongodProgram() !== undefined;
  const kind = values.store ?? (hasDatabase ? 'mongodb' : 'embedded');
  const processes = kind === 'embedded' ? 1 : number('processes', 64);
  console.log(
    `chaos: ${kind}, ${processes} processes on ${availableParallelism()} cores, ${seconds} s, --seed ${seed}`,
  );
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  process.once('SIGTERM', () => interrupted.abort());
  await using store = await openStore(kind);
  const { env, database } = store;
  print(await runChaos({ seconds, seed, processes, env, database, signal: interrupted.signal }));
}

if (values.help) console.log(HELP);
else await main();
