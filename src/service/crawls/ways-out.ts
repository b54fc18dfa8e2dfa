import type { Clock } from '../../domain/clock.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import type { Logger } from '../../domain/logger.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import {
  findPools,
  type ProxyHostReport,
  type ProxyPool,
  type ProxyReport,
} from '../../domain/proxy-pools.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { CrawlOrder } from '../../threads/crawl-threads.ts';
import { createHostSeries } from './host-series.ts';
import {
  createPoolWays,
  DIRECTLY,
  type PoolBounds,
  type PoolWays,
  type WayOut,
  type WaysClosed,
} from './pool-ways.ts';

/** The choice of a way out. */
export type WayChoice = WayOut | { readonly refused: FailureReason } | WaysClosed;

/** Chooses the ways out of crawls among the proxies of the operator and of accounts. */
export interface WaysOut {
  /** All pools of the operator. */
  readonly pools: readonly ProxyPool[];
  /**
   * `tries` is the number of ways that this crawl has taken before. `pools` are those that its
   * account may use; default: the operator's.
   */
  choose(order: CrawlOrder, tries: number, pools: readonly ProxyPool[]): WayChoice;
  /** Every proxy of the operator, direct connections excepted. */
  list(): ProxyReport[];
  /** The same of pools that an account has made. */
  listOf(accountId: string, pools: readonly ProxyPool[]): ProxyReport[];
  /** Hosts that were crawled through the operator's proxies lately; the most bytes first. */
  hosts(): ProxyHostReport[];
  /** Numbers of a bounded number of hosts, and of the others together, for metrics. */
  hostSeries(): ProxyHostReport[];
  /** Crawls that found no proxy of the operator, by pool. */
  waits(): ReadonlyMap<string, number>;
}

const OF_OPERATOR: PoolBounds = {
  retried: 20_000,
  countedHosts: 2_000,
  proxyHosts: 20_000,
  proxies: Number.POSITIVE_INFINITY,
  choices: Number.POSITIVE_INFINITY,
  troubles: 20_000,
  answers: 10_000,
};
/** An account chooses its pools, so what is known of them has to be bounded. */
const OF_ACCOUNT: PoolBounds = {
  retried: 1_000,
  countedHosts: 200,
  proxyHosts: 1_000,
  proxies: 1_000,
  choices: 50,
  troubles: 1_000,
  answers: 500,
};
/** Accounts of whose own pools something is known. */
const MAX_ACCOUNTS = 128;

/**
 * Makes the choice; all proxies count as good at first. What is known of the pools of an account is
 * apart, so whatever these do changes nothing for others.
 */
export function createWaysOut(deps: {
  readonly pools: readonly ProxyPool[];
  readonly clock: Clock;
  readonly logger: Logger;
}): WaysOut {
  const { pools: operators, clock, logger } = deps;
  const hostSeries = createHostSeries({ clock });
  const ofOperator = createPoolWays({ bounds: OF_OPERATOR, prefix: '', hostSeries, clock, logger });
  const ofAccounts = createLruMap<string, PoolWays>({ maxEntries: MAX_ACCOUNTS });

  function waysOf(accountId: string | undefined): PoolWays {
    if (accountId === undefined) return ofOperator;
    return getOrInsert(ofAccounts, accountId, () => newWays(accountId));
  }

  const newWays = (accountId: string): PoolWays =>
    createPoolWays({ bounds: OF_ACCOUNT, prefix: `${accountId} `, clock, logger });

  return {
    pools: operators,
    choose(order, tries, pools) {
      const { request, pool } = order.task;
      const wish = { ...request.parameters, proxy: request.parameters.proxy ?? pool };
      const found = findPools(pools, wish);
      // The push was accepted, but the pool may have been removed since.
      if (found === undefined) return { refused: 'proxy_not_configured' };
      const [first] = found;
      if (first === undefined) return DIRECTLY;
      return waysOf(first.accountId).choose(found, order, tries);
    },
    list: () => ofOperator.list(operators),
    listOf: (accountId, pools) => (ofAccounts.get(accountId) ?? newWays(accountId)).list(pools),
    hosts: ofOperator.hosts,
    hostSeries: hostSeries.read,
    waits: ofOperator.waits,
  };
}
