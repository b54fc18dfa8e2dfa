import { fork } from 'node:child_process';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { startPeers } from '../bench-setup.ts';
import { now } from '../dispatch/contender.ts';
import { redisProgram } from '../dispatch/contenders.ts';
import {
  busyWarning,
  describeMachine,
  packageVersion,
  programVersion,
  untilIdle,
} from '../machine.ts';
import { writeMarkedSection } from '../marked-section.ts';
import {
  type RealContender,
  type RealStart,
  startBare,
  startBullmqWorker,
  startRealService,
} from './real-contenders.ts';
import { type RealFigure, realTables } from './real-figures.ts';
import type { RealHosts } from './real-requests.ts';

// Measures lists as people have them: hundreds of hosts over TLS that take their time, with pages of 20
// to 250 KB that most of them compress. It also measures the first pages after a start.

const HELP = `Usage: npm run bench -- --real [--hosts 400] [--concurrency 200] [--cold 10000] [--pages 3000] [--rounds 3]
                              [--only NAMES] [--against DIR] [--profile DIR] [--write]

Starts each contender in each round, in another order.
The contenders are a bare loop of requests, the service on its embedded store, and BullMQ on Redis. redis-server comes from PATH. --against adds the service of another checkout. Each crawls one page, then --cold pages to storage, then --pages
to storage and --pages to a webhook. Needs openssl on PATH.

  --hosts        hosts, each with an address, a delay and a coding of its own
  --concurrency  pages at once
  --cold         pages after the first one whose time counts as cold
  --pages        pages of each warm measurement
  --rounds       rounds; figures are medians, with the least and the most
  --only         contenders, separated by commas: bare, service, against, bullmq
  --against      another checkout of the service
  --profile      a folder for the profile of each thread of the service, which costs time
  --write        puts the tables into docs/benchmarks.md
`;

const { values } = parseArgs({
  options: {
    real: { type: 'boolean', default: true },
    hosts: { type: 'string', default: '400' },
    concurrency: { type: 'string', default: '200' },
    cold: { type: 'string', default: '10000' },
    pages: { type: 'string', default: '3000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: 'bare,service,against,bullmq' },
    against: { type: 'string' },
    profile: { type: 'string' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const DOMAIN = 'bench.test';
const checkout = join(import.meta.dirname, '../..');

function count(name: 'hosts' | 'concurrency' | 'cold' | 'pages' | 'rounds'): number {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= 1 && value <= 50_000) return value;
  throw new Error(`--${name} must be a whole number from 1 to 50000`);
}

interface Counts {
  readonly served: number;
  readonly handshakes: number;
  readonly resumed: number;
  readonly lookups: number;
}

/** The hosts, in a process of their own. */
async function startHosts(folder: string, hostCount: number) {
  const child = fork(join(import.meta.dirname, 'real-site.ts'), [folder, `${hostCount}`, DOMAIN]);
  const ended = new Promise<never>((_resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the hosts ended with code ${code}`)));
  });
  ended.catch(() => undefined);
  const message = <Message>(): Promise<Message> =>
    Promise.race([
      new Promise<Message>((received) => {
        child.once('message', (sent) => received(sent as Message));
      }),
      ended,
    ]);
  const place = await message<Pick<RealHosts, 'port' | 'dns' | 'caFile'>>();
  const hosts: RealHosts = { ...place, domain: DOMAIN, count: hostCount };
  return {
    hosts,
    async counts(): Promise<Counts> {
      const answer = message<Counts>();
      child.send({});
      return answer;
    },
    [Symbol.asyncDispose]: async () => child.disconnect(),
  };
}

async function main(): Promise<void> {
  const [cold, pages, rounds] = [count('cold'), count('pages'), count('rounds')];
  const concurrency = count('concurrency');
  const warning = busyWarning();
  if (warning !== undefined) console.log(`WARNING: ${warning}`);
  await using open = new AsyncDisposableStack();
  const folder = open.use(await temporaryFolder());
  const site = open.use(await startHosts(folder.path, count('hosts')));
  const hookPeers = open.use(await startPeers('dispatch/quick-peers.ts'));
  const hook = `${hookPeers.sites[0] ?? ''}/hook`;
  const { hosts } = site;
  const versions: Record<string, string> = { undici: packageVersion('undici') };
  const only = new Set(values.only.split(','));
  const starts = new Map<string, RealStart>();
  if (only.has('bare')) starts.set('bare undici', startBare);
  if (only.has('service'))
    starts.set('service', () => startRealService(checkout, hosts, values.profile));
  const { against } = values;
  if (against !== undefined && only.has('against')) {
    starts.set('before', () => startRealService(resolve(against), hosts));
  }
  const redis = redisProgram();
  if (redis !== undefined && only.has('bullmq')) {
    versions['Redis'] = programVersion(redis, /v=(\S+)/);
    versions['BullMQ'] = packageVersion('bullmq');
    starts.set('BullMQ on Redis', () => startBullmqWorker(redis));
  } else if (only.has('bullmq')) {
    console.log('LEFT OUT: BullMQ, for there is no redis-server on PATH, and with it every ratio.');
  }

  const figures: RealFigure[] = [];
  async function measure(name: string, start: RealStart): Promise<void> {
    await untilIdle();
    const spawnedAt = now();
    await using contender: RealContender = await start();
    let next = 0;
    const crawl = async (step: RealFigure['step'], wanted: number): Promise<void> => {
      const from = next;
      next += wanted;
      const mode = step === 'webhook' ? 'webhook' : 'storage';
      const before = await site.counts();
      const databaseBefore = contender.databaseSeconds();
      const task = { mode, from, to: next, concurrency, hosts, hook } as const;
      const times = await contender.crawl(task);
      const after = await site.counts();
      const figure: RealFigure = {
        name,
        step,
        pages: wanted,
        seconds: (times.endedAt - (step === 'first' ? spawnedAt : times.startedAt)) / 1_000,
        cpuSeconds: times.cpuSeconds,
        databaseSeconds: contender.databaseSeconds() - databaseBefore,
        handshakes: after.handshakes - before.handshakes,
        resumed: after.resumed - before.resumed,
        lookups: after.lookups - before.lookups,
        residentMb: await contender.residentMb(),
      };
      figures.push(figure);
      const { seconds, cpuSeconds } = figure;
      console.log(
        `${name.padEnd(16)} ${step.padEnd(8)} ${(wanted / seconds).toFixed(0).padStart(6)}/s  ${((cpuSeconds / wanted) * 1_000).toFixed(2)} s CPU a thousand (database ${((figure.databaseSeconds / wanted) * 1_000).toFixed(2)})  handshakes ${figure.handshakes} (${figure.resumed} resumed)  look-ups ${figure.lookups}  ${figure.residentMb.toFixed(0)} MB`,
      );
    };
    await crawl('first', 1);
    await crawl('cold', cold);
    await crawl('storage', pages);
    await crawl('webhook', pages);
  }

  const contenders = [...starts];
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < contenders.length; turn += 1) {
      const [name, start] = contenders[(turn + round) % contenders.length] ?? [];
      if (name !== undefined && start !== undefined) await measure(name, start);
    }
  }
  const busy = warning === undefined ? '' : `${warning}\n\n`;
  const what = `${hosts.count} hosts, concurrency ${concurrency}, ${rounds} rounds.`;
  const section = `${describeMachine(versions)} ${what}\n\n${busy}${realTables(figures, [...starts.keys()])}`;
  console.log(`\n${section}`);
  if (values.write) {
    writeMarkedSection(new URL('../../docs/benchmarks.md', import.meta.url), 'real', section);
  }
}

if (values.help) console.log(HELP);
else await main();
