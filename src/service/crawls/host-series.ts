import type { Clock } from '../../domain/clock.ts';
import { HOUR_MS } from '../../domain/durations.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import type { ProxyHostNumbers, ProxyHostReport } from '../../domain/proxy-pools.ts';

/** What a crawl adds to the numbers of its host. */
export type HostCount = Omit<ProxyHostNumbers, 'host'>;

/**
 * Numbers of hosts for metrics, with a bounded number of series. Each crawl counts in one series: that
 * of its host, or that of all other hosts of the pool. So the sum of their rates is right, and no
 * series falls while it is there.
 */
export interface HostSeries {
  count(pool: string, host: string, numbers: HostCount): void;
  /** All series. Before that, hosts that are idle lose theirs, and those with the most bytes get one. */
  read(): ProxyHostReport[];
}

type Sum = { -readonly [Name in keyof ProxyHostReport]: ProxyHostReport[Name] };
type Named = Sum & { lastMs: number };

/** Hosts that have series, in all pools. */
const MAX_NAMED_HOSTS = 100;
/** A host without crawls for this long loses its series. */
const IDLE_MS = HOUR_MS;
/** Hosts that are counted apart until it is known whether they get series. */
const MAX_NEW = 2_000;
/** The label of hosts without series. */
const OTHERS = 'other';

/** Makes the numbers; no host has series. */
export function createHostSeries({ clock }: { readonly clock: Clock }): HostSeries {
  const named = new Map<string, Named>();
  /** Since the last reading. */
  const unnamed = new Map<string, Named>();
  const others = new Map<string, Sum>();
  const nowMs = (): number => clock.now().getTime();

  const othersOf = (pool: string): Sum => getOrInsert(others, pool, () => emptySum(pool, OTHERS));

  function unnamedOf(key: string, pool: string, host: string): Named | undefined {
    if (unnamed.size >= MAX_NEW) return unnamed.get(key);
    return getOrInsert(unnamed, key, () => ({ ...emptySum(pool, host), lastMs: 0 }));
  }

  return {
    count(pool, host, numbers) {
      const key = `${pool} ${host}`;
      const sum = named.get(key) ?? unnamedOf(key, pool, host);
      if (sum !== undefined) sum.lastMs = nowMs();
      add(sum ?? othersOf(pool), numbers);
    },

    read() {
      const idleMs = nowMs() - IDLE_MS;
      // What an idle host has counted is not added to the others, which have not grown by it.
      for (const [key, { lastMs }] of named) if (lastMs <= idleMs) named.delete(key);
      const byBytes = [...unnamed].toSorted(([, left], [, right]) => right.bytes - left.bytes);
      for (const [key, sum] of byBytes) {
        if (named.size < MAX_NAMED_HOSTS) named.set(key, sum);
        else add(othersOf(sum.pool), sum);
      }
      unnamed.clear();
      return [...named.values(), ...others.values()];
    },
  };
}

const emptySum = (pool: string, host: string): Sum => ({
  pool,
  host,
  pages: 0,
  blocks: 0,
  failures: 0,
  bytes: 0,
});

function add(sum: Sum, { pages, blocks, failures, bytes }: HostCount): void {
  sum.pages += pages;
  sum.blocks += blocks;
  sum.failures += failures;
  sum.bytes += bytes;
}
