import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import {
  COUNTING,
  commandsBetween,
  countsAddress,
  readCommands,
  totalOf,
} from '../../test/support/commands/counted-process.ts';
import { freePort } from '../../test/support/listen.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { call, startService, TOKEN } from '../bench-setup.ts';
import {
  type Contender,
  type Crawl,
  type CrawlFigure,
  type Latency,
  latencyOf,
  type StartOf,
} from './contender.ts';
import { startWorkerProcess } from './worker-process.ts';

interface Details {
  readonly activity: {
    readonly completed: number;
    readonly failed: number;
    readonly deliveries_pending: number;
  };
}

const PUSHED_AT_ONCE = 1_000;
/** Between two looks at how far a crawl is. */
const LEAST_POLL_MS = 25;
const MOST_POLL_MS = 500;

/** The plain limit. */
export function startBare(): Contender {
  const worker = startWorkerProcess('bare-worker.ts');
  return {
    name: 'bare undici',
    crawl: (crawl) => worker.ask(crawl),
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
}

/** The service on one of its stores; on MongoDB, pushes whose start is measured come by another process. */
export async function startServiceContender(
  name: string,
  mongodbUri: string | undefined,
): Promise<Contender> {
  const isCounted = mongodbUri !== undefined;
  const env = {
    MONGODB_URI: mongodbUri ?? '',
    PUSH_RATE_PER_SECOND: '1000000',
    ACCOUNT_REQUESTS_PER_SECOND: '1000000',
  };
  const service = await startService(isCounted ? { ...env, NODE_OPTIONS: COUNTING } : env);
  const load = startWorkerProcess('load-worker.ts');
  const readCounts = async () => (isCounted ? readCommands(countsAddress(service.output)) : {});
  let crawlers = 0;

  async function crawl({ mode, concurrency, pages, site, hook }: Crawl): Promise<CrawlFigure> {
    const crawler = `bench-${crawlers++}`;
    const path = `${service.url}/crawler/${TOKEN}/${crawler}`;
    const callback = mode === 'webhook' ? { callback_url: `${hook}/hook` } : {};
    await call(`${service.url}/crawler/${TOKEN}`, 'POST', {
      name: crawler,
      concurrency,
      ...callback,
    });
    await call(`${path}/pause`, 'POST');
    for (let from = 0; from < pages; from += PUSHED_AT_ONCE) {
      const count = Math.min(PUSHED_AT_ONCE, pages - from);
      const items = Array.from({ length: count }, (_, n) => ({ url: `${site}/page/${from + n}` }));
      await call(`${path}/push_batch`, 'POST', { items });
    }
    const countsBefore = await readCounts();
    const cpuBefore = service.cpuSeconds().all;
    const startedAt = performance.now();
    await call(`${path}/unpause`, 'POST');
    for (;;) {
      const { activity } = await call<Details>(path, 'GET');
      if (activity.failed > 0) throw new Error(`${name}: ${activity.failed} pages failed`);
      const ended = activity.completed - activity.deliveries_pending;
      if (ended === pages) break;
      // Asking costs the service time, so it is asked when about half of the rest is done.
      const restMs = ((performance.now() - startedAt) / Math.max(ended, 1)) * (pages - ended);
      await wait(Math.min(Math.max(restMs / 2, LEAST_POLL_MS), MOST_POLL_MS));
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    const cpuSeconds = service.cpuSeconds().all - cpuBefore;
    const commands = totalOf(commandsBetween(countsBefore, await readCounts()));
    return {
      perSecond: pages / seconds,
      cpuPerThousand: (cpuSeconds / pages) * 1_000,
      ...(isCounted ? { commandsPerPage: commands / pages } : {}),
    };
  }

  return {
    name,
    crawl,
    pushLatency: (pushes) => load.ask({ kind: 'push', service: service.url, pushes }),
    async startLatency(pushes, site, startOf) {
      await using other = isCounted ? await startService({ ...env, ROLE: 'api' }) : undefined;
      const task = { kind: 'start', service: other?.url ?? service.url, pushes, site };
      return startTimes(await load.ask<Record<string, number>>(task), startOf);
    },
    async [Symbol.asyncDispose]() {
      await load[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}

async function startTimes(
  pushedAt: Readonly<Record<string, number>>,
  startOf: StartOf,
): Promise<Latency> {
  const times = Object.entries(pushedAt).map(async ([path, at]) => (await startOf(path)) - at);
  return latencyOf(await Promise.all(times));
}

/** The program of Redis on PATH; undefined when it is not there. */
export function redisProgram(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders
    .map((folder) => join(folder, 'redis-server'))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** A Redis of its own. */
export interface BenchRedis extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
}

/** Starts Redis, which syncs its log to disk once a second. */
export async function startRedis(program: string): Promise<BenchRedis> {
  const folder = await temporaryFolder();
  const port = await freePort();
  const options = {
    port,
    bind: '127.0.0.1',
    dir: folder.path,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
  };
  const redis = spawn(
    program,
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exited = new Promise((resolve) => redis.once('exit', resolve));
  await new Promise<void>((resolve, reject) => {
    redis.once('exit', (code) => reject(new Error(`redis-server ended with code ${code}`)));
    let output = '';
    redis.stdout.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4_000);
      if (/Ready to accept connections/.test(output)) resolve();
    });
  });
  return {
    port,
    pid: redis.pid ?? 0,
    async [Symbol.asyncDispose]() {
      redis.kill('SIGTERM');
      await exited;
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** BullMQ on a Redis of its own. */
export async function startBullmq(program: string): Promise<Contender> {
  const redis = await startRedis(program);
  const worker = startWorkerProcess('bullmq-worker.ts', [String(redis.port)]);
  return {
    name: 'BullMQ on Redis',
    crawl: (crawl) =>
      worker.ask({ kind: 'crawl', crawl: { ...crawl, hook: `${crawl.hook}/hook` } }),
    pushLatency: (pushes) => worker.ask({ kind: 'push', pushes }),
    startLatency: async (pushes, site, startOf) =>
      startTimes(
        await worker.ask<Record<string, number>>({ kind: 'start', pushes, site }),
        startOf,
      ),
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await redis[Symbol.asyncDispose]();
    },
  };
}
