import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import { NORMAL } from '../tokens.ts';
import type { ChaosCrawler } from './chaos-crawlers.ts';
import type { ChaosSite } from './chaos-site.ts';

/** The pushes of one crawler. */
export interface ChaosLoad {
  /** When each URL was acknowledged, in ms of `performance.now`, by the number of its page. */
  readonly acknowledgedAt: ReadonlyMap<number, number>;
  /** The `rid`s that the service has answered, by the number of the page. */
  readonly rids: ReadonlyMap<number, string>;
  /** Faults that a client sees: a repeated push that answers other `rid`s, an unexpected status. */
  readonly faults: readonly string[];
  /** URLs that are acknowledged and were not asked for yet. */
  waiting(): number;
  /** Pushes nothing new, and resolves when what was begun is acknowledged. */
  stop(): Promise<void>;
}

/** Every eleventh URL waits for a second. */
const DELAYED_ONE_OF = 11;
/** Every third batch is pushed again. */
const REPEATED_ONE_OF = 3;
/** Longer than a run. */
const UNIQUE_SECONDS = 86_400;
const BATCH = 20;
/** The batch that all URLs of a crawler belong to. */
export const CHAOS_BATCH = 'load';
/** A call to a process that is stopped hangs. */
const CALL_MS = 5_000;
/** How long a push is repeated: the whole fleet may be down, or be stopped for half a minute. */
const PUSH_MS = 120_000;
/** One page in this number fails at its first request. */
const FLAKY_ONE_OF = 100;
const REMOVE_EVERY_MS = 1_000;
/** Until what a process logs of an answer can be read. */
const LOG_MS = 200;

/** A process that the load calls. */
export interface LoadedService {
  readonly url: string;
  /** What it has logged, if that is kept. */
  readonly output?: string;
}

/** What a process has logged of the request that it answered with this error. */
function logOf({ output = '' }: LoadedService, error: string): string {
  const id = /"request_id":"([^"]+)"/.exec(error)?.[1] ?? error;
  return output.split('\n').find((line) => line.includes(id)) ?? '';
}

/**
 * Keeps a backlog of twice a crawler's concurrency, pushed to any process; where jobs are removed, it
 * pushes a batch a second and removes jobs instead. A push that fails is
 * repeated with its `request_id`, to another process, until it is acknowledged or `signal` is aborted.
 */
export function startLoad(
  fleet: { running(): readonly LoadedService[] },
  site: ChaosSite,
  crawler: ChaosCrawler,
  signal?: AbortSignal,
): ChaosLoad {
  const acknowledgedAt = new Map<number, number>();
  const rids = new Map<number, string>();
  const faults: string[] = [];
  const seen = site.seen(crawler.name);
  const path = `/crawler/${NORMAL}/${crawler.name}`;
  let pushed = 0;
  let turn = 0;
  let removed = 0;
  let stopped = false;

  function nextService(): LoadedService {
    const services = fleet.running();
    turn += 1;
    const service = services[turn % services.length];
    if (service === undefined) throw new Error('no process runs');
    return service;
  }

  /**
   * Answers other than 200 are faults, but for those of a service that is overloaded or whose
   * database is unavailable, and `others`.
   */
  async function post(to: string, body: object, others: readonly number[] = []) {
    const service = nextService();
    const response = await fetch(`${service.url}${path}${to}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_MS),
    });
    const text = await response.text();
    if (response.status !== 200) {
      if (![503, 429, ...others].includes(response.status)) {
        await wait(LOG_MS);
        faults.push(`${to} answered ${response.status}: ${text} ${logOf(service, text)}`);
      }
      throw new Error(`${response.status}: ${text}`);
    }
    return JSON.parse(text) as { readonly results: readonly { readonly rid?: string }[] };
  }

  async function pushBatch(): Promise<void> {
    const from = pushed;
    pushed += BATCH;
    const numbers = Array.from({ length: BATCH }, (_, n) => from + n);
    const items = numbers.map((n) => ({
      url: pageOf(site, crawler, n),
      priority: n % 10,
      metadata: `{"n":${n}}`,
      delay: n % DELAYED_ONE_OF === 0 ? 1 : 0,
      unique_for: UNIQUE_SECONDS,
      batch: CHAOS_BATCH,
    }));
    await eventually(
      async () => {
        if (signal?.aborted) return;
        const { results } = await post('/push_batch', {
          items,
          request_id: `${crawler.name}-${from}`,
        });
        for (const [at, n] of numbers.entries()) {
          const rid = results[at]?.rid ?? '';
          if (rid === '')
            faults.push(`URL ${n} of ${crawler.name} was refused: ${JSON.stringify(results[at])}`);
          rids.set(n, rid);
          acknowledgedAt.set(n, performance.now());
        }
      },
      { timeoutMs: PUSH_MS, what: 'an acknowledged push' },
    );
    // A purge in between frees the keys.
    if (!crawler.removals && from % (REPEATED_ONE_OF * BATCH) === 0) await pushAgain(items, from);
  }

  /** The same URLs without the name of their request: their keys stand for them. */
  async function pushAgain(items: readonly object[], from: number): Promise<void> {
    const { results } = await post('/push_batch', { items }).catch(() => ({ results: [] }));
    for (const [at, { rid }] of results.entries()) {
      if (rid === rids.get(from + at)) continue;
      faults.push(`URL ${from + at} of ${crawler.name} was queued again as ${rid}`);
    }
  }

  /** Deletes the youngest job, or purges; what is lost with a process is not repeated. */
  async function remove(): Promise<void> {
    removed += 1;
    const rid = rids.get(rids.size - 1);
    const to = removed % 10 === 0 || rid === undefined ? '/purge' : `/delete_job?rid=${rid}`;
    // It may have left the queue: a purge whose answer was lost in a stopped process is done when
    // that process resumes.
    await post(to, {}, [404]).catch(() => undefined);
  }

  const ahead = Math.max(2 * crawler.concurrency, BATCH);
  const waiting = (): number => acknowledgedAt.size - seen.requests.size;

  async function pushing(): Promise<void> {
    while (!stopped && !signal?.aborted) {
      if (crawler.removals) {
        // What is removed is never asked for, so a backlog is no measure here.
        await pushBatch();
        await remove();
        await wait(REMOVE_EVERY_MS);
      } else if (waiting() < ahead) await pushBatch();
      else await wait(20);
    }
  }
  const done = pushing();
  // A failure is reported by `stop`.
  done.catch(() => undefined);
  return {
    acknowledgedAt,
    rids,
    faults,
    waiting,
    async stop() {
      stopped = true;
      await done;
    },
  };
}

/** The address of a crawler's page: its delay is spread from half to one and a half of the average. */
function pageOf(site: ChaosSite, { name, pageMs, hosts = 1 }: ChaosCrawler, n: number): string {
  const delayMs = Math.round(pageMs * (0.5 + ((n * 0.618034) % 1)));
  const fails = n % FLAKY_ONE_OF === FLAKY_ONE_OF - 1 ? 1 : 0;
  return site.page(name, n, delayMs, fails, hosts);
}
