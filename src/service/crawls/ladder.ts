import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { HOUR_MS, MINUTE_MS } from '../../domain/durations.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import type { QueuedJob } from '../../domain/job.ts';
import type { Logger } from '../../domain/logger.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import { DIRECT, type ProxyPool } from '../../domain/proxy-pools.ts';
import { parseRungs, type Rung } from '../../domain/rungs.ts';
import { BLOCKS, parseSuccessCodes } from '../../domain/status.ts';
import type { PoliteCrawl } from './crawling.ts';
import type { UsablePools } from './usable-pools.ts';

/** A URL that was blocked, and is tried by the next rung. */
export interface Climb {
  /** Why the host counts as blocking. */
  readonly reason: string;
  /** See `QueuedJob.climbed`. */
  readonly climbed: string;
}

/** A crawl by a rung. */
export interface RungTry {
  readonly rung: Rung;
  /** What blocked the URL before; undefined for the first try of a climb. */
  readonly climbed: string | undefined;
  /** Takes in how it ended. Undefined if the URL does not climb. */
  end(crawled: PoliteCrawl): Climb | undefined;
}

/** What was crawled by a rung since this process started. */
export interface RungNumbers {
  pages: number;
  blocks: number;
  failures: number;
}

/** Chooses the rungs of crawlers that have a ladder. */
export interface Ladders {
  /** Undefined if the crawler has no ladder, or the push has chosen a way out itself. */
  start(job: QueuedJob, crawler: Crawler): Promise<RungTry | undefined>;
  /** By the name of the rung; rungs of pools of accounts together, as those of the pool `other`. */
  numbers(): ReadonlyMap<string, Readonly<RungNumbers>>;
}

/** Hosts of crawlers that something is remembered of. */
const MAX_HOSTS = 10_000;
/** How long the URLs of a host begin at the rung that has worked; then one begins at the lowest. */
const REMEMBERED_MS = HOUR_MS;
/** The interval at which one URL of the host begins one rung lower. */
const LOWER_MS = 10 * MINUTE_MS;
/**
 * Climbs in a row that no rung has ended well. A host that answers so everywhere does not block: from
 * then on one of its URLs climbs in each interval, and the others end as without a ladder.
 */
const VAIN = { climbs: 5, intervalMs: MINUTE_MS } as const;

interface KnownHost {
  /** The name of the rung that works; undefined for the lowest. */
  rung: string | undefined;
  /** Crawls that started before tell nothing about lower rungs. */
  sinceMs: number;
  /** When a URL begins at the lowest rung, and when one begins one rung lower. */
  forgetsMs: number;
  lowerMs: number;
  hadBody: boolean;
  /** Climbs in a row that ended blocked. */
  vain: number;
  /** When the next URL may climb in spite of them. */
  climbsMs: number;
}

/** Makes the choice; no host is known to block. */
export function createLadders(deps: {
  readonly usablePools: Pick<UsablePools, 'of'>;
  readonly operators: readonly Pick<ProxyPool, 'name'>[];
  readonly clock: Clock;
  readonly logger: Logger;
}): Ladders {
  const { clock, logger } = deps;
  const hosts = createLruMap<string, KnownHost>({ maxEntries: MAX_HOSTS });
  const numbers = new Map<string, RungNumbers>();

  function knownHost(key: string): KnownHost {
    return getOrInsert(hosts, key, () => ({
      rung: undefined,
      sinceMs: 0,
      forgetsMs: 0,
      lowerMs: 0,
      hadBody: false,
      vain: 0,
      climbsMs: 0,
    }));
  }

  /** Accounts make any number of pools, whose names others are not to see. */
  const counted = new Set([DIRECT, ...deps.operators.map(({ name }) => name)]);

  function count({ name, inBrowser, pool }: Rung, what: keyof RungNumbers): void {
    const shown = counted.has(pool) ? name : `${inBrowser ? 'browser:' : ''}pool:other`;
    getOrInsert(numbers, shown, () => ({ pages: 0, blocks: 0, failures: 0 }))[what] += 1;
  }

  /** The rungs that a job can take, as a pool may have been removed, and a browser only loads pages. */
  async function rungsFor(
    { method, accountId }: QueuedJob,
    ladder: string,
  ): Promise<readonly Rung[]> {
    const rungs = parseRungs(ladder);
    const wishes = rungs.map(({ pool }) => ({ proxy: pool }));
    const pools = await deps.usablePools.of(accountId, wishes);
    const names = new Set([DIRECT, ...pools.map(({ name }) => name)]);
    return rungs.filter(
      ({ pool, inBrowser }) => names.has(pool) && !(inBrowser && method !== 'GET'),
    );
  }

  return {
    async start(job, crawler) {
      const { proxy, country, tor_network: tor } = job.parameters;
      if (crawler.escalate === undefined) return undefined;
      if (proxy !== undefined || country !== undefined || tor === true) return undefined;
      const rungs = await rungsFor(job, crawler.escalate);
      const known = knownHost(`${crawler.crawlerId} ${job.host}`);
      const startedMs = clock.now().getTime();
      const before = rungAfter(rungs, job.climbed);
      const at = before ?? firstRung(rungs, known, startedMs);
      const rung = rungs[at];
      if (rung === undefined) return undefined;
      const climbed = before === undefined ? undefined : job.climbed;

      /** Remembers the rung that has worked. */
      function works(nowMs: number): void {
        const usual = Math.max(indexOf(rungs, known.rung), 0);
        if (climbed !== undefined) known.vain = 0;
        if (at < usual ? startedMs <= known.sinceMs : at === usual) return;
        known.rung = at === 0 ? undefined : rung?.name;
        known.sinceMs = nowMs;
        known.forgetsMs = nowMs + REMEMBERED_MS;
        known.lowerMs = nowMs + LOWER_MS;
        const about = { crawler: crawler.crawlerId, host: job.host, rung: rung?.name };
        logger.info(about, 'the URLs of the host begin at another rung of the ladder');
      }

      /** Whether a blocked URL may take the next rung. */
      function mayClimb(nowMs: number): boolean {
        if (at + 1 >= rungs.length) {
          if (climbed !== undefined) known.vain += 1;
          return false;
        }
        if (climbed !== undefined || known.vain < VAIN.climbs) return true;
        if (nowMs < known.climbsMs) return false;
        known.climbsMs = nowMs + VAIN.intervalMs;
        return true;
      }

      return {
        rung,
        climbed,
        end(crawled) {
          const nowMs = clock.now().getTime();
          const { failure, originalStatus } = crawled.result;
          const reason = blockReason(crawled, job, known.hadBody);
          if (reason !== undefined) {
            count(rung, 'blocks');
            if (!mayClimb(nowMs)) return undefined;
            const tried = `${rung.name} ${reason}`;
            return { reason, climbed: climbed === undefined ? tried : `${climbed}, ${tried}` };
          }
          if (failure !== undefined) {
            if (originalStatus > 0) count(rung, 'failures');
            return undefined;
          }
          count(rung, 'pages');
          if (originalStatus === 200) known.hadBody = true;
          works(nowMs);
          return undefined;
        },
      };
    },
    numbers: () => numbers,
  };
}

/** Why a crawl counts as blocked by its host; undefined if it does not. */
function blockReason(
  { result, isBlockedEverywhere }: PoliteCrawl,
  { parameters }: QueuedJob,
  hadBody: boolean,
): string | undefined {
  const { failure, originalStatus } = result;
  if (failure === undefined) {
    const isWanted = parseSuccessCodes(parameters.custom_success_codes).has(403);
    return originalStatus === 403 && !isWanted ? 'forbidden' : undefined;
  }
  const { reason } = failure;
  const isBlock =
    BLOCKS.has(reason) || isBlockedEverywhere === true || (reason === 'empty_body' && hadBody);
  return isBlock ? reason : undefined;
}

const indexOf = (rungs: readonly Rung[], name: string | undefined): number =>
  rungs.findIndex((rung) => rung.name === name);

/** The rung after the last one that has blocked a job; undefined after the highest one. */
function rungAfter(rungs: readonly Rung[], climbed: string | undefined): number | undefined {
  const [last] = climbed?.split(', ').at(-1)?.split(' ') ?? [];
  const at = last === undefined ? -1 : indexOf(rungs, last);
  return at < 0 || at + 1 >= rungs.length ? undefined : at + 1;
}

/** The rung that a URL begins at, of a host of which something is known. */
function firstRung(rungs: readonly Rung[], known: KnownHost, nowMs: number): number {
  const usual = indexOf(rungs, known.rung);
  if (usual <= 0) return 0;
  const forgets = nowMs >= known.forgetsMs;
  if (!forgets && nowMs < known.lowerMs) return usual;
  // Only this one: others follow when it has worked.
  known.lowerMs = nowMs + LOWER_MS;
  if (!forgets) return usual - 1;
  known.forgetsMs = nowMs + REMEMBERED_MS;
  return 0;
}
