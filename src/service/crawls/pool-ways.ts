import type { Clock } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import type { Logger } from '../../domain/logger.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import {
  mix,
  type PoolProxy,
  type ProxyHostNumbers,
  type ProxyHostReport,
  type ProxyNumbers,
  type ProxyPool,
  type ProxyReport,
  proxyUrl,
  spreadHash,
} from '../../domain/proxy-pools.ts';
import { sessionKey } from '../../domain/session-key.ts';
import { hostOf } from '../../domain/target-url.ts';
import type { CrawlTask } from '../../engine/engine.ts';
import type { CrawlResult } from '../../threads/build-result.ts';
import type { CrawlOrder } from '../../threads/crawl-threads.ts';
import type { HostSeries } from './host-series.ts';
import { createProxyHealth, type ProxyUse, type ProxyVerdict } from './proxy-health.ts';
import { createSilentProxies } from './silent-proxies.ts';

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

/** No proxy may be used before. */
export interface WaysClosed {
  readonly opensAtMs: number;
  /** Whether the host has blocked all proxies of the pools. */
  readonly isBlocked: boolean;
}

/** Chooses the ways out of crawls among the pools of one owner, and knows what these have done. */
export interface PoolWays {
  /** `tries` is the number of ways that this crawl has taken before. */
  choose(found: readonly ProxyPool[], order: CrawlOrder, tries: number): WayOut | WaysClosed;
  /** Every proxy of the pools, direct connections excepted. */
  list(pools: readonly ProxyPool[]): ProxyReport[];
  /** Hosts that were crawled through proxies lately, by pool; those with the most bytes first. */
  hosts(): ProxyHostReport[];
  /** Crawls that found no proxy, by pool. */
  waits(): ReadonlyMap<string, number>;
}

/** What is remembered: the latest of each. */
export interface PoolBounds {
  /** URLs whose last proxy failed them. */
  readonly retried: number;
  /** Hosts of pools, and hosts of proxies, whose numbers are kept. */
  readonly countedHosts: number;
  readonly proxyHosts: number;
  /** Proxies whose numbers are kept. */
  readonly proxies: number;
  /** Combinations of pools. */
  readonly choices: number;
  /** Proxies in trouble at hosts, and hosts that have answered. */
  readonly troubles: number;
  readonly answers: number;
}

/** Before a URL is tried through the only proxy that is left, which has just failed it. */
const OTHERS_MS = 1_000;
/** Of the crawls in flight, at most one in this number is the try of a proxy that has failed, if it can be helped. */
const MOST_TRIES = 20;
/** Hosts that wait for proxies, for the log. */
const MAX_WAITING = 1_000;
/** Hosts of a proxy that are listed: those with the most bytes. */
const MAX_LISTED_HOSTS = 5;

interface Candidate {
  readonly pool: ProxyPool;
  readonly proxy: PoolProxy;
  readonly hash: number;
  readonly numbers: Numbers;
}

/** `about` is the pool and the proxy. */
type CountedHost = { -readonly [Name in keyof ProxyHostNumbers]: ProxyHostNumbers[Name] } & {
  readonly about: string;
};
type HostNumbers = { -readonly [Name in keyof ProxyHostReport]: ProxyHostReport[Name] };
type Numbers = { -readonly [Name in keyof ProxyNumbers]: ProxyNumbers[Name] };

interface Candidates {
  readonly name: string;
  readonly pools: readonly ProxyPool[];
  readonly all: readonly Candidate[];
}

/** A direct connection. */
export const DIRECTLY: WayOut = {
  proxy: undefined,
  task: {},
  name: '',
  id: '',
  bytes: () => 0,
  end: () => 'unknown',
};

/** Makes the choice; all proxies count as good at first. */
export function createPoolWays(deps: {
  readonly bounds: PoolBounds;
  /** Comes before the names of ways: pools of several owners may have the same name. */
  readonly prefix: string;
  /** Counts hosts for metrics. */
  readonly hostSeries?: Pick<HostSeries, 'count'>;
  readonly clock: Clock;
  readonly logger: Logger;
}): PoolWays {
  const { bounds, prefix, clock, logger } = deps;
  const health = createProxyHealth({ maxTroubles: bounds.troubles, maxHosts: bounds.answers });
  const silent = createSilentProxies(bounds.proxies);
  /** Crawls in flight, and those among them that are the try of a proxy that has failed. */
  const flights = { all: 0, tries: 0 };
  const byPools = createLruMap<string, Candidates>({ maxEntries: bounds.choices });
  const waiting = createLruMap<string, true>({ maxEntries: MAX_WAITING });
  /** The proxies that have just failed URLs, which are retried through others. */
  const failedFor = createLruMap<string, string>({ maxEntries: bounds.retried });
  /** By pool and proxy. */
  const numbers = createLruMap<string, Numbers>({ maxEntries: bounds.proxies });
  const waits = createLruMap<string, number>({ maxEntries: bounds.choices });
  const hostNumbers = createLruMap<string, HostNumbers>({ maxEntries: bounds.countedHosts });
  /** By pool, proxy and host. */
  const proxyHosts = createLruMap<string, CountedHost>({ maxEntries: bounds.proxyHosts });
  const nowMs = (): number => clock.now().getTime();

  function numbersOf({ name }: ProxyPool, { id }: PoolProxy): Numbers {
    const empty = { pages: 0, blocks: 0, failures: 0, received: 0, sent: 0 };
    return getOrInsert(numbers, `${name} ${id}`, () => empty);
  }

  function countersOf({ pool, proxy, numbers: ofProxy }: Candidate, host: string) {
    const empty = { host, pages: 0, blocks: 0, failures: 0, bytes: 0 };
    const about = `${pool.name} ${proxy.id}`;
    const ofBoth = getOrInsert(proxyHosts, `${about} ${host}`, () => ({ about, ...empty }));
    const ofHost = getOrInsert(hostNumbers, `${pool.name} ${host}`, () => ({
      pool: pool.name,
      ...empty,
    }));
    return { ofHosts: [ofHost, ofBoth], all: [ofProxy, ofHost, ofBoth] };
  }

  function candidatesOf(found: readonly ProxyPool[]): Candidates {
    const name = found.map((pool) => pool.name).join(' ');
    const known = byPools.get(name);
    // An account may have changed its pools since.
    if (known?.pools.every((pool, at) => pool === found[at]) === true) return known;
    const all = found.flatMap((pool) =>
      pool.proxies.map((proxy) => ({
        pool,
        proxy,
        hash: spreadHash(proxy.id),
        numbers: numbersOf(pool, proxy),
      })),
    );
    const made = { name, pools: found, all };
    byPools.set(name, made);
    return made;
  }

  /** Logs once that URLs wait, and once that they do no more. */
  function noteWaiting(use: ProxyUse, { name, all }: Candidates, waitMs: number): void {
    const isWhole = all.every(({ proxy }) => health.trouble(proxy, nowMs()) !== undefined);
    const key = isWhole ? name : `${name} ${use.accountId} ${use.host}`;
    if (waiting.get(key) === true) return;
    waiting.set(key, true);
    const host = isWhole ? undefined : use.host;
    const failed = isWhole ? all.find(({ numbers }) => numbers.lastFailure) : undefined;
    const lastFailure = failed?.numbers.lastFailure;
    logger.warn(
      { pool: prefix + name, waitMs, ...defined({ host, lastFailure }) },
      'no proxy of the pool may be used now; its URLs wait',
    );
  }

  function noteOpen(use: ProxyUse, { name }: Candidates): void {
    if (waiting.size === 0) return;
    for (const key of [name, `${name} ${use.accountId} ${use.host}`]) {
      if (!waiting.delete(key)) continue;
      logger.info({ pool: prefix + name, host: use.host }, 'a proxy of the pool may be used again');
    }
  }

  return {
    choose(found, { task, spec, retry = 0 }, tries) {
      const { parameters, url } = task.request;
      const { country } = parameters;
      const candidates = candidatesOf(found);
      const host = hostOf(url);
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
      const sparesAny = spares || flights.tries > flights.all / MOST_TRIES;
      const isTry = ({ proxy }: Candidate): boolean =>
        health.isTry({ proxy, accountId: task.accountId, host });
      const isForOthers = (candidate: Candidate): boolean =>
        silent.isSilent(candidate.proxy.id, now) || (sparesAny && isTry(candidate));
      const isBound = parameters.session !== undefined;
      for (const candidate of isBound ? order : lastThose(order, isForOthers)) {
        const { pool, proxy } = candidate;
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
        const ended = silent.started(proxy.id, now);
        const part = isTry(candidate) ? 1 : 0;
        flights.tries += part;
        flights.all += 1;
        const url = proxyUrl(pool, proxy, country);
        let bytes = 0;
        return {
          proxy: url,
          task: {
            ...defined({ proxy: url }),
            onTraffic(traffic) {
              addTraffic(candidate.numbers, traffic);
              bytes += traffic.own;
            },
          },
          name: prefix + candidates.name,
          id: proxy.id,
          bytes: () => bytes,
          end(result) {
            const verdict = started.end(result, nowMs());
            ended(verdict === 'answered' || verdict === 'blocked', nowMs());
            flights.tries -= part;
            flights.all -= 1;
            noteFailure(candidate.numbers, result);
            const { ofHosts, all } = countersOf(candidate, host);
            const ofCrawl = { pages: 0, blocks: 0, failures: 0, bytes };
            for (const each of ofHosts) each.bytes += bytes;
            for (const each of [...all, ofCrawl]) {
              if (verdict === 'answered') each.pages += 1;
              else if (verdict === 'blocked') each.blocks += 1;
              else if (verdict !== 'unknown') each.failures += 1;
            }
            deps.hostSeries?.count(pool.name, host, ofCrawl);
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
    list(pools) {
      const now = nowMs();
      const blocked = health.blockedHosts(now);
      const counted = Map.groupBy(proxyHosts.entries(), ([, { about }]) => about);
      return pools.flatMap((pool) =>
        pool.proxies.flatMap((proxy, index) => {
          const { id, label, url } = proxy;
          if (url === undefined) return [];
          const trouble = health.trouble(proxy, now);
          const blockedAt = blocked.get(id) ?? [];
          const hosts = (counted.get(`${pool.name} ${id}`) ?? [])
            .map(([, each]) => each)
            .toSorted((left, right) => right.bytes - left.bytes)
            .slice(0, MAX_LISTED_HOSTS);
          const about = { pool: pool.name, index, label, trouble, blockedAt, hosts };
          return [{ ...about, hasPassword: hasCredentials(url), ...numbersOf(pool, proxy) }];
        }),
      );
    },
    hosts: () =>
      Array.from(hostNumbers.entries(), ([, each]) => each).toSorted(
        (left, right) => right.bytes - left.bytes,
      ),
    waits: () => new Map(waits.entries()),
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

function noteFailure(numbers: Numbers, result: CrawlResult | undefined): void {
  const { reason, detail } = result?.failure ?? {};
  if (reason !== 'proxy_failed' && reason !== 'proxy_refused') return;
  numbers.lastFailure = detail === undefined ? reason : `${reason} (${detail})`;
}

/** Candidates that are left to others; further ones are taken in their order. */
const MAX_LEFT = 200;

/** The candidates in their order, but those for which `isLast` is true after the others. */
function* lastThose(
  order: Iterable<Candidate>,
  isLast: (candidate: Candidate) => boolean,
): Generator<Candidate> {
  const last: Candidate[] = [];
  for (const candidate of order) {
    if (last.length < MAX_LEFT && isLast(candidate)) last.push(candidate);
    else yield candidate;
  }
  yield* last;
}

function hasCredentials(url: string): boolean {
  return /^\w+:\/\/[^/]*@/.test(url);
}
