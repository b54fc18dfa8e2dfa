import { Pool } from 'undici';
import { call, TOKEN } from '../bench-setup.ts';
import { latencyOf, now, PUSHERS } from './contender.ts';
import { answerJobs } from './worker-process.ts';

// The client of a service whose latencies are measured.

type Task =
  | { readonly kind: 'push'; readonly service: string; readonly pushes: number }
  | {
      readonly kind: 'start';
      readonly service: string;
      readonly pushes: number;
      readonly site: string;
    };

let names = 0;

async function createCrawler(service: string): Promise<string> {
  const name = `latency-${process.pid}-${names++}`;
  await call(`${service}/crawler/${TOKEN}`, 'POST', { name });
  return name;
}

const pushPath = (crawler: string, url: string): string =>
  `/?token=${TOKEN}&crawler=${crawler}&callback=true&url=${encodeURIComponent(url)}`;

async function get(pool: Pool, path: string): Promise<void> {
  const { statusCode, body } = await pool.request({ path, method: 'GET' });
  await body.dump();
  if (statusCode !== 200) throw new Error(`a push answered ${statusCode}`);
}

/** Pushes one URL at a time on each connection, into a paused crawler. */
async function push(service: string, pushes: number) {
  const name = await createCrawler(service);
  await call(`${service}/crawler/${TOKEN}/${name}/pause`, 'POST');
  const pool = new Pool(service, { connections: PUSHERS });
  const times: number[] = [];
  let next = 0;
  async function pusher(): Promise<void> {
    while (next < pushes) {
      const path = pushPath(name, `https://example.com/item/${next++}`);
      const startedAt = performance.now();
      await get(pool, path);
      times.push(performance.now() - startedAt);
    }
  }
  await Promise.all(Array.from({ length: PUSHERS }, pusher));
  await pool.close();
  await call(`${service}/crawler/${TOKEN}/${name}/delete`, 'POST');
  return latencyOf(times);
}

/** Pushes one URL to each of several idle crawlers; answers when each was pushed. */
async function start(service: string, pushes: number, site: string) {
  const crawlers: string[] = [];
  for (let n = 0; n < pushes; n += 1) crawlers.push(await createCrawler(service));
  const pool = new Pool(service, { connections: 1 });
  const pushedAt: Record<string, number> = {};
  for (const crawler of crawlers) {
    const path = `/start/${crawler}`;
    const request = pushPath(crawler, site + path);
    pushedAt[path] = now();
    await get(pool, request);
    // Each crawl has ended before the next push, on any store.
    for (let left = true; left; ) {
      const details = await call<{ activity: { completed: number } }>(
        `${service}/crawler/${TOKEN}/${crawler}`,
        'GET',
      );
      left = details.activity.completed === 0;
    }
  }
  await pool.close();
  return pushedAt;
}

answerJobs(async (job) => {
  const task = job as Task;
  if (task.kind === 'push') return push(task.service, task.pushes);
  return start(task.service, task.pushes, task.site);
});
