import { gzipSync } from 'node:zlib';
import { type Job, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Agent } from 'undici';
import { type Crawl, type CrawlFigure, latencyOf, now, PUSHERS } from './contender.ts';
import { fetchPage, postPage } from './page-requests.ts';
import { answerJobs, timed } from './worker-process.ts';

// A crawler as one would build it on BullMQ: a job for each URL, whose page is compressed and kept in
// Redis for 14 days or posted to the webhook. It signs nothing, guards no address and counts nothing.

const port = Number(process.argv[2]);
const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
const redis = new Redis(connection);
const RETENTION_SECONDS = 14 * 86_400;
const ADDED_AT_ONCE = 1_000;
const OPTIONS = { removeOnComplete: true, removeOnFail: true, attempts: 110 };

interface Page {
  readonly url: string;
}

type Task =
  | { readonly kind: 'crawl'; readonly crawl: Crawl }
  | { readonly kind: 'push'; readonly pushes: number }
  | { readonly kind: 'start'; readonly pushes: number; readonly site: string };

let queues = 0;

function openQueue() {
  const name = `bench-${queues++}`;
  return { name, queue: new Queue<Page>(name, { connection }) };
}

async function crawl({ mode, concurrency, pages, site, hook }: Crawl): Promise<CrawlFigure> {
  const { name, queue } = openQueue();
  for (let from = 0; from < pages; from += ADDED_AT_ONCE) {
    const count = Math.min(ADDED_AT_ONCE, pages - from);
    const jobs = Array.from({ length: count }, (_, n) => ({
      name: 'page',
      data: { url: `${site}/page/${from + n}` },
      opts: OPTIONS,
    }));
    await queue.addBulk(jobs);
  }
  const agent = new Agent({ connections: concurrency });
  const process = async (job: Job<Page>): Promise<void> => {
    const page = gzipSync(await fetchPage(job.data.url, agent));
    if (mode === 'storage')
      await redis.set(`result:${job.id}:${name}`, page, 'EX', RETENTION_SECONDS);
    else await postPage(hook, page, { 'content-encoding': 'gzip', rid: job.id ?? '' }, agent);
  };
  const worker = new Worker<Page>(name, process, { connection, concurrency, autorun: false });
  await worker.waitUntilReady();
  const { seconds, cpuSeconds } = await timed(
    () =>
      new Promise<void>((resolve, reject) => {
        let ended = 0;
        worker.on('completed', () => {
          ended += 1;
          if (ended === pages) resolve();
        });
        worker.on('failed', (_job, error) => reject(error));
        worker.run().catch(reject);
      }),
  );
  await worker.close();
  await queue.close();
  await agent.close();
  return { perSecond: pages / seconds, cpuPerThousand: (cpuSeconds / pages) * 1_000 };
}

async function push(pushes: number) {
  const { queue } = openQueue();
  const times: number[] = [];
  let next = 0;
  async function pusher(): Promise<void> {
    while (next < pushes) {
      const url = `https://example.com/item/${next++}`;
      const startedAt = performance.now();
      await queue.add('page', { url }, OPTIONS);
      times.push(performance.now() - startedAt);
    }
  }
  await Promise.all(Array.from({ length: PUSHERS }, pusher));
  await queue.obliterate({ force: true });
  await queue.close();
  return latencyOf(times);
}

/** Adds URLs one by one to an idle queue; answers when each was added. */
async function start(pushes: number, site: string): Promise<Readonly<Record<string, number>>> {
  const { name, queue } = openQueue();
  const agent = new Agent();
  let ended = Promise.withResolvers<void>();
  const process = async (job: Job<Page>) => {
    await fetchPage(job.data.url, agent);
  };
  const worker = new Worker<Page>(name, process, { connection, concurrency: 20 });
  worker.on('completed', () => ended.resolve());
  await worker.waitUntilReady();
  const pushedAt: Record<string, number> = {};
  for (let n = 0; n < pushes; n += 1) {
    const path = `/start/bullmq-${n}`;
    ended = Promise.withResolvers();
    pushedAt[path] = now();
    await queue.add('page', { url: site + path }, OPTIONS);
    await ended.promise;
  }
  await worker.close();
  await queue.close();
  await agent.close();
  return pushedAt;
}

answerJobs(async (job) => {
  const task = job as Task;
  if (task.kind === 'crawl') return crawl(task.crawl);
  if (task.kind === 'push') return push(task.pushes);
  return start(task.pushes, task.site);
});
