import { setTimeout as wait } from 'node:timers/promises';
import { call, TOKEN } from '../bench-setup.ts';

/** A crawler that keeps its pages and one that delivers them. */
const NAMES = ['stores', 'posts'] as const;
const CONCURRENCY = 50;
const BATCH = 1_000;
const TICK_MS = 100;
const POLL_MS = 25;

interface Activity {
  readonly pushed: number;
  readonly completed: number;
  readonly failed: number;
  readonly deliveries_pending: number;
}

/** The load of a soak run. */
export interface SoakLoad {
  /** Crawls backlogs of both crawlers, and returns pages a second. */
  calibrate(pages: number): Promise<number>;
  /** Pushes that many URLs a second, to both in turn, until told to stop. */
  start(perSecond: number): { stop(): Promise<void> };
  /** URLs that were pushed and have not ended. */
  backlog(): Promise<number>;
  /** Pages that failed. */
  failed(): Promise<number>;
}

/** Makes the crawlers. */
export async function createSoakLoad(
  service: string,
  site: string,
  hook: string,
): Promise<SoakLoad> {
  const base = `${service}/crawler/${TOKEN}`;
  for (const name of NAMES) {
    const callback = name === 'posts' ? { callback_url: `${hook}/hook` } : {};
    await call(base, 'POST', { name, concurrency: CONCURRENCY, ...callback });
  }
  let pages = 0;
  async function push(name: string, count: number): Promise<void> {
    if (count === 0) return;
    const items = Array.from({ length: count }, () => ({ url: `${site}/page/${pages++}` }));
    await call(`${base}/${name}/push_batch`, 'POST', { items });
  }
  async function read(): Promise<Activity[]> {
    const replies = NAMES.map((name) => call<{ activity: Activity }>(`${base}/${name}`, 'GET'));
    return (await Promise.all(replies)).map(({ activity }) => activity);
  }
  const backlog = async (): Promise<number> =>
    (await read()).reduce(
      (sum, each) => sum + each.pushed - each.completed - each.failed + each.deliveries_pending,
      0,
    );
  return {
    async calibrate(count) {
      for (const name of NAMES) await call(`${base}/${name}/pause`, 'POST');
      for (let left = count; left > 0; left -= BATCH) {
        for (const name of NAMES) await push(name, Math.min(BATCH, left) / NAMES.length);
      }
      const startedAt = performance.now();
      await Promise.all(NAMES.map((name) => call(`${base}/${name}/unpause`, 'POST')));
      while ((await backlog()) > 0) await wait(POLL_MS);
      return count / ((performance.now() - startedAt) / 1_000);
    },
    start(perSecond) {
      let stopped = false;
      const pushing = (async () => {
        const startedAt = performance.now();
        let pushed = 0;
        for (let turn = 0; !stopped; turn += 1) {
          const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond) - pushed;
          const count = Math.min(due, BATCH);
          await push(NAMES[turn % NAMES.length] ?? '', count);
          pushed += count;
          await wait(TICK_MS);
        }
      })();
      // A failure is reported by `stop`.
      pushing.catch(() => undefined);
      return {
        async stop() {
          stopped = true;
          await pushing;
        },
      };
    },
    backlog,
    failed: async () => (await read()).reduce((sum, each) => sum + each.failed, 0),
  };
}
