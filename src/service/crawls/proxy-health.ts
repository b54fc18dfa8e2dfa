import { createHostHealth, type HostHealth } from '../../dispatcher/host-health.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { PoolProxy, ProxyTrouble } from '../../domain/proxy-pools.ts';
import { BLOCKS, type FailureReason } from '../../domain/status.ts';
import type { CrawlResult } from '../../threads/build-result.ts';

/** One use of a proxy: for whom, and at which host. */
export interface ProxyUse {
  readonly proxy: PoolProxy;
  readonly accountId: string;
  readonly host: string;
}

/** A crawl through a proxy. */
export interface ProxyTry {
  /** Takes in the result; undefined when it tells nothing, as of an aborted crawl. */
  end(result: CrawlResult | undefined, nowMs: number): ProxyVerdict;
}

/** Whose doing the end of a crawl was, as far as the proxy goes. */
export type ProxyVerdict =
  | 'answered'
  /** The proxy was not reached, or refused: the target was not asked. */
  | 'failed'
  /** The host shows a block page to this proxy, or wants fewer requests of it. */
  | 'blocked'
  /** There was no answer, and that is the proxy's doing. */
  | 'lost'
  /** It says nothing about the proxy. */
  | 'unknown';

/**
 * Which proxies may be used. A proxy that fails has a cool-down, which doubles with each failed try;
 * after it one crawl is the next try. What only the proxy can have caused counts for everyone. What
 * the target of a crawl can have caused counts for the account that crawled it, so that nobody takes
 * a proxy away from others.
 */
export interface ProxyHealth {
  /** When the proxy may be used next, in milliseconds of the service time; undefined for now. */
  opensAt(use: ProxyUse, nowMs: number): number | undefined;
  /** Whether a crawl would be the try of a proxy that has failed. */
  isTry(use: ProxyUse): boolean;
  /** Whether the host has blocked the proxy, which therefore has a cool-down there. */
  isBlocked(use: ProxyUse, nowMs: number): boolean;
  start(use: ProxyUse, nowMs: number): ProxyTry;
  /** Why a proxy has a cool-down for everyone. */
  trouble(proxy: PoolProxy, nowMs: number): ProxyTrouble | undefined;
  /** Hosts that have blocked a proxy lately, by its id; at most five for each. */
  blockedHosts(nowMs: number): ReadonlyMap<string, readonly string[]>;
}

const NOT_REACHED: ReadonlySet<string> = new Set<FailureReason>([
  'proxy_refused',
  'timeout',
  'connect_timeout',
  'connection_failed',
  'tls_failed',
  'protocol_error',
]);

/** How long an answer of the host through another proxy is evidence against this one. */
const EVIDENCE_MS = 60_000;
/** Hosts in a row that a proxy has not reached, which is evidence without any such answer. */
const UNREACHED_HOSTS = 3;
/** A crawl is slow beyond both: this time, and this many times the mean of the host. */
const SLOW = { ms: 5_000, times: 5, samples: 5 } as const;
const MEAN_WEIGHT = 0.9;
/** While another crawl is the try. */
const TRY_MS = 1_000;
/** One failure puts a proxy aside, also a silent one for as long as any other. */
const OF_PROXY = { awayFailures: 1, silentMs: Number.POSITIVE_INFINITY } as const;
/** Hosts of a proxy that are listed. */
const MAX_LISTED = 5;

interface Entry {
  readonly health: HostHealth;
  running: number;
  /** Hosts that were not reached since the last that was. */
  readonly unreached: Set<string>;
}

interface Entries {
  get(key: string): Entry | undefined;
  set(key: string, entry: Entry): unknown;
  delete(key: string): boolean;
}

/** The answers of a host to crawls of an account. */
interface KnownHost {
  proxyId: string;
  atMs: number;
  meanMs: number;
  samples: number;
}

/**
 * Makes the health of proxies that nothing is known of. Remembers `maxTroubles` proxies in trouble, for
 * each account and host, and `maxHosts` hosts that have answered.
 */
export function createProxyHealth(bounds: {
  readonly maxTroubles: number;
  readonly maxHosts: number;
}): ProxyHealth {
  const forAll = new Map<string, Entry>();
  const forSome = createLruMap<string, Entry>({
    maxEntries: bounds.maxTroubles,
    isPinned: ({ running }) => running > 0,
  });
  const hosts = createLruMap<string, KnownHost>({ maxEntries: bounds.maxHosts });

  const accountKey = ({ proxy, accountId }: ProxyUse): string => `${accountId} ${proxy.id}`;
  const hostKey = (use: ProxyUse): string => `${accountKey(use)} ${use.host}`;

  function entriesOf(use: ProxyUse): Entry[] {
    const found: Entry[] = [];
    const every = forAll.size === 0 ? undefined : forAll.get(use.proxy.endpoint);
    if (every !== undefined) found.push(every);
    if (forSome.size === 0) return found;
    for (const key of [accountKey(use), hostKey(use)]) {
      const some = forSome.get(key);
      if (some !== undefined) found.push(some);
    }
    return found;
  }

  function entry(map: Entries, key: string): Entry {
    return getOrInsert(map, key, () => ({
      health: createHostHealth(() => Number.POSITIVE_INFINITY, OF_PROXY),
      running: 0,
      unreached: new Set<string>(),
    }));
  }

  /** The proxy has reached something: what was known against it is taken back. */
  function answered(map: Entries, key: string, startedMs: number, nowMs: number): void {
    const known = map.get(key);
    if (known === undefined) return;
    known.unreached.clear();
    known.health.ended({ kind: 'answered' }, startedMs, nowMs);
    if (known.health.isOrdinary && known.running === 0) map.delete(key);
  }

  function noteAnswer(use: ProxyUse, startedMs: number, nowMs: number): void {
    const key = `${use.accountId} ${use.host}`;
    const tookMs = nowMs - startedMs;
    const known = hosts.get(key) ?? { proxyId: '', atMs: 0, meanMs: tookMs, samples: 0 };
    if (known.samples >= SLOW.samples && tookMs > Math.max(SLOW.ms, known.meanMs * SLOW.times)) {
      const { health } = entry(forSome, accountKey(use));
      health.ended({ kind: 'slow' }, startedMs, nowMs);
    } else answered(forSome, accountKey(use), startedMs, nowMs);
    known.meanMs = known.meanMs * MEAN_WEIGHT + tookMs * (1 - MEAN_WEIGHT);
    hosts.set(key, { ...known, proxyId: use.proxy.id, atMs: nowMs, samples: known.samples + 1 });
  }

  /** Whether a host that was not reached is the proxy's doing. */
  function isLost(use: ProxyUse, nowMs: number): boolean {
    const { unreached } = entry(forSome, accountKey(use));
    if (unreached.size < UNREACHED_HOSTS) unreached.add(use.host);
    const known = hosts.get(`${use.accountId} ${use.host}`);
    const answersOthers =
      known !== undefined && known.proxyId !== use.proxy.id && nowMs - known.atMs < EVIDENCE_MS;
    return answersOthers || unreached.size >= UNREACHED_HOSTS;
  }

  function judge(
    use: ProxyUse,
    result: CrawlResult | undefined,
    startedMs: number,
    nowMs: number,
  ): ProxyVerdict {
    const { reason = '', retryAfterMs } = result?.failure ?? {};
    if (result === undefined) return 'unknown';
    if (reason === 'proxy_failed') {
      const { health } = entry(forAll, use.proxy.endpoint);
      health.ended({ kind: 'away', reason }, startedMs, nowMs);
      return 'failed';
    }
    const isUnreached = NOT_REACHED.has(reason);
    if (!isUnreached && result.originalStatus === 0) return 'unknown';
    if (isUnreached) {
      if (!isLost(use, nowMs)) return 'unknown';
      const { health } = entry(forSome, accountKey(use));
      health.ended({ kind: 'away', reason }, startedMs, nowMs);
      return 'lost';
    }
    answered(forAll, use.proxy.endpoint, startedMs, nowMs);
    if (BLOCKS.has(reason)) {
      answered(forSome, accountKey(use), startedMs, nowMs);
      const { health } = entry(forSome, hostKey(use));
      health.ended({ kind: 'away', reason, retryAfterMs }, startedMs, nowMs);
      return 'blocked';
    }
    answered(forSome, hostKey(use), startedMs, nowMs);
    noteAnswer(use, startedMs, nowMs);
    return 'answered';
  }

  return {
    opensAt(use, nowMs) {
      let at = 0;
      for (const { health, running } of entriesOf(use)) {
        if (health.notBeforeMs > nowMs) at = Math.max(at, health.notBeforeMs);
        else if (running >= health.limit) at = Math.max(at, nowMs + TRY_MS);
      }
      return at === 0 ? undefined : at;
    },
    isTry: (use) => entriesOf(use).some(({ health }) => health.trouble?.kind === 'away'),
    isBlocked: (use, nowMs) => (forSome.get(hostKey(use))?.health.notBeforeMs ?? 0) > nowMs,
    start(use, startedMs) {
      const entries = entriesOf(use);
      for (const each of entries) {
        each.running += 1;
        each.health.started(startedMs);
      }
      let isOver = false;
      return {
        end(result, nowMs) {
          if (isOver) return 'unknown';
          isOver = true;
          for (const each of entries) each.running -= 1;
          return judge(use, result, startedMs, nowMs);
        },
      };
    },
    trouble({ endpoint }, nowMs) {
      const trouble = forAll.get(endpoint)?.health.trouble;
      return trouble === undefined || trouble.untilMs <= nowMs ? undefined : trouble;
    },
    blockedHosts(nowMs) {
      const found = new Map<string, string[]>();
      for (const [key, { health }] of forSome.entries()) {
        const [, proxyId = '', host] = key.split(' ');
        if (host === undefined || health.notBeforeMs <= nowMs) continue;
        const hosts = getOrInsert(found, proxyId, () => []);
        if (hosts.length < MAX_LISTED && !hosts.includes(host)) hosts.push(host);
      }
      return found;
    },
  };
}
