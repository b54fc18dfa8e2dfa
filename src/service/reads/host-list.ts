import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { TokenOwner } from '../../domain/account.ts';
import { type ServiceClock, toWall } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { ruleFor } from '../../domain/host-rules.ts';
import { type HostState, mergeStates } from '../../domain/host-state.ts';
import type { HostStore, QueuedHosts } from '../../store/store.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';
import { createExpiringCache } from '../expiring-cache.ts';

/** What URLs of a host wait for although the crawler has slots for them. */
export interface HostWait {
  readonly kind: 'paused' | 'away' | 'slow' | 'pace';
  readonly reason: string;
  /** Absent for a paused host. */
  readonly until?: Date;
}

/** A host of a crawler, for people. */
export interface ListedHost extends Omit<HostState, 'nextStartMs' | 'robotsDelayMs' | 'health'> {
  /** Undefined when too many hosts have more jobs. */
  readonly queued: number | undefined;
  readonly nextDueAt: Date | undefined;
  readonly lastTryAt: Date | undefined;
  readonly failed: number;
  readonly meanMs: number;
  readonly wait: HostWait | undefined;
}

/** The order of a list of hosts. */
export type HostOrder = 'queued' | 'slowest' | 'failed' | 'running' | 'rate' | 'name';

/** What a list has. */
export interface HostSelection {
  readonly order: HostOrder;
  readonly limit: number;
  /** Only hosts whose name contains this. */
  readonly contains: string;
}

/** Reads what is known of hosts. */
export interface HostReads {
  /** Throws as {@link CrawlerAccess} does. */
  list(
    owner: TokenOwner,
    crawlerName: string,
    selection: HostSelection,
  ): Promise<{ readonly hosts: readonly ListedHost[]; readonly queuedHosts: number }>;
  /** Tells what the hosts of a crawler are waited for. */
  waits(crawler: Crawler): Promise<(host: string) => HostWait | undefined>;
}

/** Most hosts of the queue that a list chooses from. */
const MAX_QUEUED = 10_000;
/** A list of hosts is reused for this multiple of the time it took to read, plus a second. */
const CACHE_FACTOR = 20;
const MIN_CACHE_MS = 1_000;
const MAX_CACHED = 20;
/** How long the rate of a host lasts after its last try; rates are measured every four seconds. */
const RATE_MS = 10_000;

const ranks: Readonly<Record<Exclude<HostOrder, 'name'>, (host: ListedHost) => number>> = {
  queued: ({ queued }) => queued ?? 0,
  slowest: ({ meanMs }) => meanMs,
  failed: ({ failed }) => failed,
  running: ({ running }) => running,
  rate: ({ perSecond }) => perSecond,
};

/** Makes the reads. */
export function createHostReads(deps: {
  readonly hosts: HostStore;
  readonly access: Pick<CrawlerAccess, 'find'>;
  readonly dispatcher: Pick<Dispatcher, 'hostStates'>;
  readonly clock: ServiceClock;
  readonly processId: string;
}): HostReads {
  const { hosts, access, clock } = deps;
  const queues = createExpiringCache<QueuedHosts>({
    clock,
    ttlMs: (tookMs) => Math.max(MIN_CACHE_MS, tookMs * CACHE_FACTOR),
    maxEntries: MAX_CACHED,
  });

  /** What all processes know, with what this one knows now. */
  async function states(crawlerId: string): Promise<Map<string, HostState>> {
    const reports = await hosts.reports(crawlerId);
    const here = deps.dispatcher.hostStates(crawlerId);
    // What this process has forgotten is in its report.
    const saved = reports.filter(
      ({ processId }) => here === undefined || processId !== deps.processId,
    );
    const found = new Map<string, HostState>();
    const now = clock.now().getTime();
    for (const told of [...(here ?? []), ...saved.flatMap((report) => report.hosts)]) {
      // A process that works on the crawler no more has left the rate that it had measured last.
      const isOver = now - told.lastMs > RATE_MS;
      const state = isOver ? { ...told, perSecond: 0 } : told;
      const known = found.get(state.host);
      found.set(state.host, known === undefined ? state : mergeStates(known, state));
    }
    return found;
  }

  function waitOf(crawler: Crawler, host: string, state: HostState | undefined) {
    if (crawler.pausedHosts?.includes(host)) return { kind: 'paused', reason: 'user' } as const;
    const rule = ruleFor(crawler.politeness?.hosts ?? [], host);
    if (rule?.paused === true) return { kind: 'paused', reason: 'rule' } as const;
    const { health, nextStartMs = 0 } = state ?? {};
    const at = (ms: number): Date => toWall(clock, new Date(ms));
    if (health !== undefined) {
      const { kind, reason, untilMs } = health;
      return { kind, reason, until: at(untilMs) };
    }
    if (nextStartMs <= clock.now().getTime()) return undefined;
    return { kind: 'pace', reason: '', until: at(nextStartMs) } as const;
  }

  return {
    async list(owner, crawlerName, { order, limit, contains }) {
      const crawler = await access.find(owner, crawlerName);
      const { crawlerId } = crawler;
      const [queue, known] = await Promise.all([
        queues.get(crawlerId, () => hosts.longest(crawlerId, MAX_QUEUED)),
        states(crawlerId),
      ]);
      const { hosts: longest = [], total = 0 } = queue ?? {};
      const queued = new Map(longest.map((each) => [each.host, each]));
      const names = new Set([...queued.keys(), ...known.keys(), ...(crawler.pausedHosts ?? [])]);
      const rows = [...names]
        .filter((host) => host.includes(contains))
        .map((host): ListedHost => {
          const state = known.get(host) ?? { ...NOTHING, host };
          const { nextDueAt, queued: count } = queued.get(host) ?? {};
          const { lastMs, tries, tookMs } = state;
          return {
            ...state,
            queued: count ?? (total > longest.length ? undefined : 0),
            nextDueAt: nextDueAt && toWall(clock, nextDueAt),
            lastTryAt: lastMs === 0 ? undefined : toWall(clock, new Date(lastMs)),
            failed: Object.values(state.failures).reduce((sum, each) => sum + each, 0),
            meanMs: tries === 0 ? 0 : tookMs / tries,
            wait: waitOf(crawler, host, state),
          };
        });
      const byName = (a: ListedHost, b: ListedHost): number => (a.host < b.host ? -1 : 1);
      const rank = order === 'name' ? () => 0 : ranks[order];
      rows.sort((a, b) => rank(b) - rank(a) || byName(a, b));
      return { hosts: rows.slice(0, limit), queuedHosts: total };
    },

    async waits(crawler) {
      const known = await states(crawler.crawlerId);
      return (host) => waitOf(crawler, host, known.get(host));
    },
  };
}

const NOTHING = { running: 0, tries: 0, tookMs: 0, failures: {}, perSecond: 0, lastMs: 0 } as const;
