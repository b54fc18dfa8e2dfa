import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import { NORMAL } from '../tokens.ts';
import type { ChaosCrawler } from './chaos-crawlers.ts';
import { BATCH, DELAY_MS, isAged, isDelayed, isFailing, itemOf } from './chaos-pages.ts';
import type { ChaosSite } from './chaos-site.ts';

/** The pushes of one crawler. */
export interface ChaosLoad {
  /**
   * When each URL was acknowledged that the site will be asked for, in ms of `performance.now`, by the
   * number of its page.
   */
  readonly acknowledgedAt: ReadonlyMap<number, number>;
  /** The `rid`s that the service has answered, by the number of the page. */
  readonly rids: ReadonlyMap<number, string>;
  /** The `rid`s of failed crawls that were pushed again, by that of the failed one. */
  readonly again: ReadonlyMap<string, string>;
  /** Before which no request may come for a page, in ms of `performance.now`, by its number. */
  readonly notBefore: ReadonlyMap<number, number>;
  /** Faults that a client sees: a repeated push that answers other `rid`s, an unexpected status. */
  readonly faults: readonly string[];
  /** URLs that are acknowledged and were not asked for yet. */
  waiting(): number;
  /** Pushes nothing new, and resolves when what was begun is acknowledged. */
  stop(): Promise<void>;
  /** Pushes all failed crawls again whose new `rid` is not known yet; for when all work has ended. */
  pushRestAgain(): Promise<void>;
}

/** Every third call is repeated after its answer, and every third is made twice at once. */
const REPEATED_ONE_OF = 3;
/** After this many calls those crawls that have failed are pushed again. */
const AGAIN_ONE_OF = 10;
/** The batch of what is pushed again. */
export const AGAIN_BATCH = 'again';
/** Failed crawls that one call names. */
const MAX_AGAIN = 200;
/** A call to a process that is stopped hangs. */
const CALL_MS = 5_000;
/** How long a push is repeated: the whole fleet may be down, or be stopped for half a minute. */
const PUSH_MS = 120_000;
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
  const again = new Map<string, string>();
  const notBefore = new Map<number, number>();
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
  async function post(to: string, body: object, others: readonly number[] = []): Promise<string> {
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
    return text;
  }

  async function pushItems(body: object) {
    const { results } = JSON.parse(await post('/push_batch', body)) as {
      readonly results: readonly { readonly rid?: string }[];
    };
    return results;
  }

  async function pushBatch(): Promise<void> {
    const from = pushed;
    pushed += BATCH;
    const numbers = Array.from({ length: BATCH }, (_, n) => from + n);
    const sentAt = performance.now();
    const items = numbers.map((n) => itemOf(site, crawler, n));
    const repeats = (from / BATCH) % REPEATED_ONE_OF;
    // A purge in between frees the keys.
    const twin = !crawler.removals && repeats === 1 ? pushUnnamed(items) : undefined;
    await eventually(
      async () => {
        if (signal?.aborted) return;
        const results = await pushItems({ items, request_id: `${crawler.name}-${from}` });
        for (const [at, n] of numbers.entries()) {
          const rid = results[at]?.rid ?? '';
          if (rid === '')
            faults.push(`URL ${n} of ${crawler.name} was refused: ${JSON.stringify(results[at])}`);
          rids.set(n, rid);
          if (isFailing(n) || isAged(crawler, n)) continue;
          acknowledgedAt.set(n, performance.now());
          if (isDelayed(n)) notBefore.set(n, sentAt + DELAY_MS);
        }
      },
      { timeoutMs: PUSH_MS, what: 'an acknowledged push' },
    );
    if (twin !== undefined) expectSame(await twin, from);
    if (crawler.removals) return;
    if (repeats === 0) expectSame(await pushUnnamed(items), from);
    if ((from / BATCH) % AGAIN_ONE_OF === 0) await pushAgain().catch(() => undefined);
  }

  /** The same URLs without the name of their request: their keys stand for them. */
  const pushUnnamed = (items: readonly object[]) => pushItems({ items }).catch(() => []);

  function expectSame(results: readonly { readonly rid?: string }[], from: number): void {
    for (const [at, { rid }] of results.entries()) {
      if (rid === rids.get(from + at)) continue;
      faults.push(`URL ${from + at} of ${crawler.name} was queued again as ${rid}`);
    }
  }

  /** Pushes failed crawls again; an answer that is lost is asked for again by a later call. */
  async function pushAgain(): Promise<void> {
    const failing = [...rids].flatMap(([n, rid]) => (isFailing(n) ? rid : []));
    const unknown = failing.filter((rid) => !again.has(rid));
    // Of one that is known the answer has to be the same.
    const known = failing.filter((rid) => again.has(rid)).slice(-1);
    const body = { rids: [...unknown.slice(0, MAX_AGAIN), ...known], into_batch: AGAIN_BATCH };
    if (body.rids.length === 0) return;
    const lines = (await post('/push_again', body)).split('\n').filter((line) => line !== '');
    for (const line of lines) {
      const { results = [] } = JSON.parse(line) as {
        readonly results?: readonly { readonly again_of: string; readonly rid?: string }[];
      };
      for (const { again_of: of, rid = '' } of results) {
        if (rid === '') continue;
        const before = again.get(of) ?? rid;
        if (before !== rid) faults.push(`${of} of ${crawler.name} was pushed again twice: ${rid}`);
        again.set(of, rid);
      }
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
    again,
    notBefore,
    faults,
    waiting,
    async stop() {
      stopped = true;
      await done;
    },
    async pushRestAgain() {
      let before = -1;
      while (again.size > before) {
        before = again.size;
        await eventually(pushAgain, { timeoutMs: PUSH_MS, what: 'failed crawls pushed again' });
      }
    },
  };
}
