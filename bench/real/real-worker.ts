import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Job, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { postPage } from '../dispatch/page-requests.ts';
import { answerJobs } from '../dispatch/worker-process.ts';
import { createAgent, fetchRealPage, type RealHosts, urlOf } from './real-requests.ts';

// The two that `npm run bench -- --real` compares with, in a process of their own. With the argument
// `bare` it is a loop of requests without a queue, which keeps nothing. With the port of Redis it is a
// worker on BullMQ, which compresses each page and keeps it in Redis for 14 days or posts it.

/** Pages `from` to `to` of the list. */
export interface RealTask {
  readonly mode: 'storage' | 'webhook';
  readonly from: number;
  readonly to: number;
  readonly concurrency: number;
  readonly hosts: RealHosts;
  readonly hook: string;
}

/** When the pages ended, in ms since 1970, and processor seconds until then, in all threads. */
export interface RealTimes {
  readonly startedAt: number;
  readonly firstAt: number;
  readonly endedAt: number;
  readonly cpuSeconds: number;
}

const RETENTION_SECONDS = 14 * 86_400;
const OPTIONS = { removeOnComplete: true, removeOnFail: true, attempts: 110 };
const ADDED_AT_ONCE = 1_000;
const pack = promisify(gzip);
const now = (): number => performance.timeOrigin + performance.now();
const [kind = ''] = process.argv.slice(2);
let agent: ReturnType<typeof createAgent> | undefined;

/** Notes the ends of pages; resolves with the last one. */
function createTimes(pages: number) {
  const cpuBefore = process.cpuUsage();
  const startedAt = now();
  const all = Promise.withResolvers<RealTimes>();
  let ended = 0;
  let firstAt = 0;
  return {
    all,
    end(): void {
      ended += 1;
      if (ended === 1) firstAt = now();
      if (ended < pages) return;
      const { user, system } = process.cpuUsage(cpuBefore);
      all.resolve({ startedAt, firstAt, endedAt: now(), cpuSeconds: (user + system) / 1e6 });
    },
  };
}

async function crawlBare({
  mode,
  from,
  to,
  concurrency,
  hosts,
  hook,
}: RealTask): Promise<RealTimes> {
  const times = createTimes(to - from);
  agent ??= createAgent(hosts);
  const { length } = { length: concurrency };
  let next = from;
  async function loop(dispatcher: NonNullable<typeof agent>): Promise<void> {
    while (next < to) {
      const page = await fetchRealPage(urlOf(hosts, next++), dispatcher);
      if (mode === 'webhook') await postPage(hook, page, {}, dispatcher);
      times.end();
    }
  }
  const dispatcher = agent;
  await Promise.all(Array.from({ length }, () => loop(dispatcher)));
  return times.all.promise;
}

async function crawlByQueue(task: RealTask): Promise<RealTimes> {
  const { mode, from, to, concurrency, hosts, hook } = task;
  const connection = { host: '127.0.0.1', port: Number(kind), maxRetriesPerRequest: null };
  const redis = new Redis(connection);
  const name = `real-${from}-${mode}`;
  const queue = new Queue<{ url: string }>(name, { connection });
  for (let at = from; at < to; at += ADDED_AT_ONCE) {
    const count = Math.min(ADDED_AT_ONCE, to - at);
    await queue.addBulk(
      Array.from({ length: count }, (_, n) => ({
        name: 'page',
        data: { url: urlOf(hosts, at + n) },
        opts: OPTIONS,
      })),
    );
  }
  agent ??= createAgent(hosts);
  const dispatcher = agent;
  const process = async (job: Job<{ url: string }>): Promise<void> => {
    const page = await pack(await fetchRealPage(job.data.url, dispatcher));
    if (mode === 'storage') {
      await redis.set(`result:${name}:${job.id}`, page, 'EX', RETENTION_SECONDS);
    } else {
      const headers = { 'content-encoding': 'gzip', rid: job.id ?? '' };
      await postPage(hook, page, headers, dispatcher);
    }
  };
  const worker = new Worker(name, process, { connection, concurrency, autorun: false });
  await worker.waitUntilReady();
  const times = createTimes(to - from);
  worker.on('completed', () => times.end());
  worker.on('failed', (_job, error) => times.all.reject(error));
  worker.run().catch((error: unknown) => times.all.reject(error));
  const done = await times.all.promise;
  await worker.close();
  await queue.close();
  redis.disconnect();
  return done;
}

answerJobs((task) =>
  kind === 'bare' ? crawlBare(task as RealTask) : crawlByQueue(task as RealTask),
);
