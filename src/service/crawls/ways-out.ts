import type { Clock } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { Logger } from '../../domain/logger.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import {
  findPools,
  mix,
  type PoolProxy,
  type ProxyHostReport,
  type ProxyNumbers,
  type ProxyPool,
  type ProxyReport,
  proxyUrl,
  spreadHash,
} from '../../domain/proxy-pools.ts';
import { sessionKey } from '../../domain/session-key.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { CrawlTask } from '../../engine/engine.ts';
import type { CrawlResult } from '../../threads/build-result.ts';
import type { CrawlOrder } from '../../threads/crawl-threads.ts';
import { createProxyHealth, type ProxyUse, type ProxyVerdict } from './proxy-health.ts';

/** How a crawl reaches its target. */
export interface WayOut {
  /** URL of the proxy, with credentials; undefined for a direct connection. */
  readonly proxy: string | undefined;
  /** What the crawl's task takes over. */
  readonly task: Pick<CrawlTask, 'proxy' | 'onTraffic'>;
  /** The same for all proxies that stand for each other; empty for a direct connection. */
  readonly name: string;
  /** Names the proxy in what is kept of a session; empty for a direct connection. */
  readonly id: string;
  /** Bytes of the crawl itself that have passed through the proxy. */
  bytes(): number;
  /** Has to be called once; without a result when the crawl was aborted. */
  end(result: CrawlResult | undefined): ProxyVerdict;
}

/** The choice of a way out. */
export type WayChoice =
  | WayOut
  | { readonly refused: FailureReason }
  /** No proxy may be used before. */
  | {
      readonly opensAtMs: number;
      /** Whether the host has blocked all proxies of the pool. */
      readonly isBlocked: boolean;
    };

/** Chooses the ways out of crawls among the proxies of the operator. */
export interface WaysOut {
  /** All pools of the operator. */
  readonly pools: readonly ProxyPool[];
  /** `tries` is the number of ways that this crawl has taken before. */
  choose(order: CrawlOrder, tries: number): WayChoice;
  /** Every proxy, direct connections excepted. */
  list(): ProxyReport[];
  /** Hosts that were crawled through proxies lately, by pool; those with the most bytes first. */
  hosts(): ProxyHostReport[];
  /** Crawls that found no proxy, by pool. */
  waits(): ReadonlyMap<string, number>;
}

/** URLs whose last proxy is remembered. */
const MAX_RETRIED = 20_000;
/** Before a URL is tried through the only proxy that is left, which has just failed it. */
const OTHERS_MS = 1_000;
/** Hosts of pools whose numbers are kept: the latest. */
const MAX_COUNTED_HOSTS = 2_000;
/** Hosts that wait for proxies, for the log. */
const MAX_WAITING = 1_000;

interface Candidate {
  readonly pool: ProxyPool;
  readonly proxy: PoolProxy;
  readonly hash: number;
  readonly numbers: Numbers;
}

type HostNumbers = { -readonly [Name in keyof ProxyHostReport]: ProxyHostReport[Name] };
type Numbers = { -readonly [Name in keyof ProxyNumbers]: ProxyNumbers[Name] };

interface Candidates {
  readonly name: string;
  readonly all: readonly Candidate[];
}

const DIRECTLY: WayOut = {
  proxy: undefined,
  task: {},
  name: '',
  id: '',
  bytes: () => 0,
  end: () => 'unknown',
};

/** Makes the choice; all proxies count as good at first. */
export function createWaysOut(deps: {
  readonly pools: readonly ProxyPool[];
  readonly clock: Clock;
  readonly logger: Logger;
}): WaysOut {
  const { pools, clock, logger } = deps;
  const health = createProxyHealth();
  const byPools = new Map<string, Candidates>();
  const waiting = createLruMap<string, true>({ maxEntries: MAX_WAITING });
  /** The proxies that have just failed URLs, which are retried through others. */
  const failedFor = createLruMap<string, string>({ maxEntries: MAX_RETRIED });
  const numbers = new Map<PoolProxy, Numbers>();
  const waits = new Map<string, number>();
  const hostNumbers = createLruMap<string, HostNumbers>({ maxEntries: MAX_COUNTED_HOSTS });
  const nowMs = (): number => clock.now().getTime();

  function numbersOf(proxy: PoolProxy): Numbers {
    const known = numbers.get(proxy);
    if (known !== undefined) return known;
    const made = { pages: 0, blocks: 0, failures: 0, received: 0, sent: 0 };
    numbers.set(proxy, made);
    return made;
  }

  function hostNumbersOf(pool: string, host: string): HostNumbers {
    const key = `${pool} ${host}`;
    const known = hostNumbers.get(key);
    if (known !== undefined) return known;
    const made = { pool, host, pages: 0, blocks: 0, failures: 0, bytes: 0 };
    hostNumbers.set(key, made);
    return made;
  }

  function candidatesOf(found: readonly ProxyPool[]): Candidates {
    const name = found.map((pool) => pool.name).join(' ');
    const known = byPools.get(name);
    if (known !== undefined) return known;
    const all = found.flatMap((pool) =>
      pool.proxies.map((proxy) => ({
        pool,
        proxy,
        hash: spreadHash(proxy.id),
        numbers: numbersOf(proxy),
      })),
    );
    const made = { name, all };
    byPools.set(name, made);
    return made;
  }

  /** Logs once that URLs wait, and once that they do no more. */
  function noteWaiting(use: ProxyUse, { name, all }: Candidates, waitMs: number): void {
    const isWhole = all.every(({ proxy }) => health.trouble(proxy, nowMs()) !== undefined);
    const key = isWhole ? name : `${name} ${use.accountId} ${use.host}`;
    if (waiting.get(key) === true) return;
    waiting.set(key, true);
    logger.warn(
      { pool: name, waitMs, ...(isWhole ? {} : { host: use.host }) },
      'no proxy of the pool may be used now; its URLs wait',
    );
  }

  function noteOpen(use: ProxyUse, { name }: Candidates): void {
    if (waiting.size === 0) return;
    for (const key of [name, `${name} ${use.accountId} ${use.host}`]) {
      if (!waiting.delete(key)) continue;
      logger.info({ pool: name, host: use.host }, 'a proxy of the pool may be used again');
    }
  }

  return {
    pools,
    choose({ task, spec, retry = 0 }, tries) {
      const { parameters, url } = task.request;
      const { country } = parameters;
      const found = findPools(pools, { ...parameters, proxy: parameters.proxy ?? task.pool });
      // The push was accepted, but the operator may have removed the pool since.
      if (found === undefined) return { refused: 'proxy_not_configured' };
      if (found.length === 0) return DIRECTLY;
      const candidates = candidatesOf(found);
      const host = URL.parse(url)?.host ?? '';
      const now = nowMs();
      const { rid = '' } = spec;
      let opensAtMs = Number.POSITIVE_INFINITY;
      const order =
        parameters.session === undefined
          ? inTurn(candidates, spec.rid, retry + tries)
          : ofSession(
              candidates,
              [task.accountId, task.tokenType, sessionKey(parameters)].join(' '),
            );
      // A URL that has failed is not the try of a proxy that has, unless no other proxy may be used.
      const spares = retry + tries > 0 && parameters.session === undefined;
      const isTry = ({ proxy }: Candidate): boolean =>
        health.isTry({ proxy, accountId: task.accountId, host });
      for (const { pool, proxy, numbers } of spares ? lastThose(order, isTry) : order) {
        if (proxy.url === undefined) return DIRECTLY;
        const use = { proxy, accountId: task.accountId, host };
        const isLast =
          candidates.all.length > 1 &&
          parameters.session === undefined &&
          failedFor.get(rid) === proxy.id;
        const at = health.opensAt(use, now) ?? (isLast ? now + OTHERS_MS : undefined);
        if (at !== undefined) {
          opensAtMs = Math.min(opensAtMs, at);
          continue;
        }
        noteOpen(use, candidates);
        const started = health.start(use, now);
        const url = proxyUrl(pool, proxy, country);
        let bytes = 0;
        return {
          proxy: url,
          task: {
            ...defined({ proxy: url }),
            onTraffic(traffic) {
              addTraffic(numbers, traffic);
              bytes += traffic.own;
            },
          },
          name: candidates.name,
          id: proxy.id,
          bytes: () => bytes,
          end(result) {
            const verdict = started.end(result, nowMs());
            const ofHost = hostNumbersOf(pool.name, host);
            ofHost.bytes += bytes;
            for (const each of [numbers, ofHost]) {
              if (verdict === 'answered') each.pages += 1;
              else if (verdict === 'blocked') each.blocks += 1;
              else if (verdict !== 'unknown') each.failures += 1;
            }
            if (verdict === 'answered') failedFor.delete(rid);
            else if (rid !== '') failedFor.set(rid, proxy.id);
            return verdict;
          },
        };
      }
      waits.set(candidates.name, (waits.get(candidates.name) ?? 0) + 1);
      const [first] = candidates.all;
      if (first !== undefined) {
        const use = { proxy: first.proxy, accountId: task.accountId, host };
        noteWaiting(use, candidates, opensAtMs - now);
      }
      const isBlocked = candidates.all.every(({ proxy }) =>
        health.isBlocked({ proxy, accountId: task.accountId, host }, now),
      );
      return { opensAtMs, isBlocked };
    },
    list() {
      const now = nowMs();
      const blocked = health.blockedHosts(now);
      return pools.flatMap((pool) =>
        pool.proxies.flatMap((proxy, index) => {
          const { id, label, url } = proxy;
          if (url === undefined) return [];
          const trouble = health.trouble(proxy, now);
          const blockedAt = blocked.get(id) ?? [];
          return [{ pool: pool.name, index, label, trouble, blockedAt, ...numbersOf(proxy) }];
        }),
      );
    },
    hosts: () =>
      Array.from(hostNumbers.entries(), ([, each]) => each).toSorted(
        (left, right) => right.bytes - left.bytes,
      ),
    waits: () => waits,
  };
}

/**
 * The proxies in the order in which a crawl asks for them. It follows from the URL's `rid` and the
 * number of the try, so each try begins with another proxy than the one before, in any process.
 */
function* inTurn({ all }: Candidates, rid: string | undefined, turn: number): Generator<Candidate> {
  const first =
    (rid === undefined ? Math.trunc(Math.random() * 2 ** 32) : mix(spreadHash(rid))) + turn;
  for (let at = 0; at < all.length; at += 1) {
    const candidate = all[(first + at) % all.length];
    if (candidate !== undefined) yield candidate;
  }
}

/**
 * The proxies in the order in which a session uses them: by a score of each with the session
 * (rendezvous hashing). So every process finds the same one, and if a proxy is left out or a pool
 * changes, only its own sessions move.
 */
function* ofSession({ all }: Candidates, session: string): Generator<Candidate> {
  const key = spreadHash(session);
  const score = ({ hash }: Candidate): number => mix(hash, key);
  let best: Candidate | undefined;
  for (const each of all) if (best === undefined || score(each) > score(best)) best = each;
  if (best === undefined) return;
  yield best;
  const others = all.filter((each) => each !== best);
  yield* others.toSorted((left, right) => score(right) - score(left));
}

function addTraffic(
  numbers: Numbers,
  { received, sent }: Pick<ProxyNumbers, 'received' | 'sent'>,
): void {
  numbers.received += received;
  numbers.sent += sent;
}

/** The candidates in their order, but those for which `isLast` is true after the others. */
function* lastThose(
  order: Iterable<Candidate>,
  isLast: (candidate: Candidate) => boolean,
): Generator<Candidate> {
  const last: Candidate[] = [];
  for (const candidate of order) {
    if (isLast(candidate)) last.push(candidate);
    else yield candidate;
  }
  yield* last;
}
