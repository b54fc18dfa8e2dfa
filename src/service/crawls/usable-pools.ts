import type { Clock } from '../../domain/clock.ts';
import { SECOND_MS } from '../../domain/durations.ts';
import type { Logger } from '../../domain/logger.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import {
  findPools,
  isDirect,
  type PoolWish,
  type ProxyPool,
  usablePools,
} from '../../domain/proxy-pools.ts';
import { type AccountPools, isOfOtherKey, poolsSealed } from '../accounts/account-pools.ts';
import { createSharedLookup } from '../shared-lookup.ts';

/** Finds the pools that accounts may use: their own, and the operator's. */
export interface UsablePools {
  /**
   * The pools for crawls of an account that ask for `wishes`. Changes of another process are seen
   * within two seconds, and new pools at once. Throws `pools_sealed` if the account's own pools cannot
   * be opened, unless each wish names a pool of the operator.
   */
  of(accountId: string, wishes: readonly PoolWish[]): Promise<readonly ProxyPool[]>;
  /** Reads the pools of an account again before they are used next. */
  forget(accountId: string): void;
}

interface Known {
  readonly version: number;
  readonly own: readonly ProxyPool[];
  readonly usable: readonly ProxyPool[];
  /** Whether the account has pools that no key of this process opens. */
  readonly isSealed: boolean;
  readonly readMs: number;
}

/** How long the pools of an account are used without looking for changes. */
export const POOLS_FRESH_MS = 2 * SECOND_MS;
const MAX_ACCOUNTS = 10_000;
/** Proxies of accounts that are kept in memory. */
const MAX_PROXIES = 50_000;

/** Makes the look-up; nothing is known at first. */
export function createUsablePools(deps: {
  readonly operators: readonly ProxyPool[];
  readonly read: AccountPools['read'];
  readonly clock: Clock;
  readonly logger: Logger;
}): UsablePools {
  const { operators, clock, logger } = deps;
  const known = createLruMap<string, Known>({ maxEntries: MAX_ACCOUNTS + 1 });
  let proxies = 0;

  function keep(accountId: string, found: Known): Known {
    drop(accountId);
    known.set(accountId, found);
    proxies += countProxies(found);
    for (const [oldest] of known.entries()) {
      const hasRoom = proxies <= MAX_PROXIES && known.size <= MAX_ACCOUNTS;
      if (hasRoom || oldest === accountId) break;
      drop(oldest);
    }
    return found;
  }

  function drop(accountId: string): void {
    const found = known.get(accountId);
    if (found === undefined) return;
    proxies -= countProxies(found);
    known.delete(accountId);
  }

  const load = createSharedLookup(async (accountId): Promise<Known> => {
    const before = known.get(accountId);
    const readMs = clock.now().getTime();
    try {
      const read = await deps.read(accountId, before?.version ?? 0);
      const own = read?.pools ?? before?.own ?? [];
      const version = read?.version ?? before?.version ?? 0;
      const usable = usablePools(operators, own);
      return keep(accountId, { version, own, usable, isSealed: false, readMs });
    } catch (err) {
      // Logged when it was found.
      if (before?.isSealed === true && isOfOtherKey(err)) {
        return keep(accountId, { ...before, readMs });
      }
      if (before === undefined || before.isSealed) {
        logger.warn({ err, accountId }, 'the pools of an account were not read');
        if (!isOfOtherKey(err)) throw err;
        return keep(accountId, { version: 0, own: [], usable: operators, isSealed: true, readMs });
      }
      logger.warn({ err, accountId }, 'the pools of an account were not read; the last are used');
      return keep(accountId, { ...before, readMs });
    }
  });

  const isOperators = (wish: PoolWish): boolean =>
    isDirect(wish) ||
    wish.tor_network === true ||
    operators.some(({ name }) => name === wish.proxy);

  return {
    async of(accountId, wishes) {
      if (wishes.every(isDirect)) return operators;
      const found = known.get(accountId);
      const isEnough =
        found !== undefined &&
        clock.now().getTime() - found.readMs < POOLS_FRESH_MS &&
        wishes.every((wish) => findPools(found.usable, wish) !== undefined);
      const { usable, isSealed } = isEnough ? found : await load(accountId);
      if (isSealed && !wishes.every(isOperators)) throw poolsSealed();
      return usable;
    },
    forget: drop,
  };
}

function countProxies({ own }: Known): number {
  return own.reduce((sum, { proxies }) => sum + proxies.length, 1);
}
