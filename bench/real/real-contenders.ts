import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { call, readCpuSeconds, startService, TOKEN } from '../bench-setup.ts';
import { now } from '../dispatch/contender.ts';
import { startRedis } from '../dispatch/contenders.ts';
import { startWorkerProcess } from '../dispatch/worker-process.ts';
import { urlOf } from './real-requests.ts';
import type { RealTask, RealTimes } from './real-worker.ts';

/** One that crawls lists, in a process that has just started. */
export interface RealContender extends AsyncDisposable {
  crawl(task: RealTask): Promise<RealTimes>;
  /** Processor seconds so far of its database, where that is a process of its own. */
  databaseSeconds(): number;
  /** Resident memory of its process in MB, now. */
  residentMb(): Promise<number>;
}

const PUSHED_AT_ONCE = 1_000;
const PROFILER = join(import.meta.dirname, 'profile-threads.ts');

/** How a contender is started, by its name in the tables. */
export type RealStart = () => Promise<RealContender>;

/** A loop of requests, without a queue. */
export const startBare: RealStart = async () => startWorker(['bare']);

/** A worker on BullMQ and a Redis of its own. */
export async function startBullmqWorker(program: string): Promise<RealContender> {
  const redis = await startRedis(program);
  const worker = startWorker([String(redis.port)]);
  return {
    ...worker,
    databaseSeconds: () => readCpuSeconds(`/proc/${redis.pid}/stat`),
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await redis[Symbol.asyncDispose]();
    },
  };
}

function startWorker(args: readonly string[]): RealContender {
  const worker = startWorkerProcess('../real/real-worker.ts', args);
  return {
    crawl: (task) => worker.ask(task),
    databaseSeconds: () => 0,
    residentMb: async () => Number.NaN,
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
}

interface Details {
  readonly activity: {
    readonly completed: number;
    readonly failed: number;
    readonly deliveries_pending: number;
  };
}

/** The service on its embedded store, of the checkout in `folder`; its threads write profiles to `profiles`. */
export async function startRealService(
  folder: string,
  hosts: RealTask['hosts'],
  profiles?: string,
): Promise<RealContender> {
  const env = {
    MONGODB_URI: '',
    NETWORK_ALLOW: '127.0.0.0/8',
    DNS_SERVERS: hosts.dns,
    NODE_EXTRA_CA_CERTS: hosts.caFile,
    NODE_COMPILE_CACHE: join(folder, 'node_modules/.cache/compile'),
    ...(profiles === undefined ? {} : { THREAD_PROFILES: profiles }),
  };
  const flags = profiles === undefined ? [] : ['--import', PROFILER];
  const service = await startService(env, folder, flags);

  async function crawl({ mode, from, to, concurrency, hook }: RealTask): Promise<RealTimes> {
    const name = `real-${mode}-${from}`;
    const path = `${service.url}/crawler/${TOKEN}/${name}`;
    const callback = mode === 'webhook' ? { callback_url: hook } : {};
    await call(`${service.url}/crawler/${TOKEN}`, 'POST', { name, concurrency, ...callback });
    await call(`${path}/pause`, 'POST');
    for (let at = from; at < to; at += PUSHED_AT_ONCE) {
      const count = Math.min(PUSHED_AT_ONCE, to - at);
      const items = Array.from({ length: count }, (_, n) => ({ url: urlOf(hosts, at + n) }));
      await call(`${path}/push_batch`, 'POST', { items });
    }
    const cpuBefore = service.cpuSeconds().all;
    const startedAt = now();
    await call(`${path}/unpause`, 'POST');
    const pages = to - from;
    let firstAt = 0;
    for (;;) {
      const { activity } = await call<Details>(path, 'GET');
      if (activity.failed > 0) throw new Error(`${activity.failed} pages failed`);
      const ended = activity.completed - activity.deliveries_pending;
      if (ended > 0 && firstAt === 0) firstAt = now();
      if (ended === pages) break;
      // Asking costs the service time, so it is asked when about half of the rest is done.
      const restMs = ((now() - startedAt) / Math.max(ended, 1)) * (pages - ended);
      await wait(Math.min(Math.max(restMs / 2, 10), 500));
    }
    const cpuSeconds = service.cpuSeconds().all - cpuBefore;
    return { startedAt, firstAt, endedAt: now(), cpuSeconds };
  }

  return {
    crawl,
    databaseSeconds: () => 0,
    residentMb: async () => residentMb(service.pid),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}
