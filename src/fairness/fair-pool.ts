import { DomainError } from '../domain/errors.ts';
import { createTransientMap } from '../domain/transient-map.ts';
import { createTurnQueue } from './turn-queue.ts';

/** On whose behalf a part of a pool is used. */
export interface Claimant {
  readonly accountId: string;
  /** The crawlers of an account take turns; absent for calls that belong to no crawler. */
  readonly crawlerId?: string | undefined;
}

/** A part of the pool in use. */
export interface Grant {
  readonly amount: number;
  /** Moves `amount` of it, at most what it holds, to a new grant. */
  split(amount: number): Grant;
  /** Gives back all except `amount`; changes nothing when it holds less. */
  shrink(amount: number): void;
  /** Gives everything back; further calls do nothing. */
  release(): void;
}

/**
 * Something that accounts share (slots, bytes). Accounts take turns, and so do the crawlers of each
 * account.
 */
export interface FairPool {
  /** In use now, including the reserve. */
  readonly used: number;
  /** Claims that wait now. */
  readonly waiting: number;
  /**
   * Waits for its turn and for room. Of an amount above the whole capacity, the capacity is
   * granted. Rejects with the signal's reason when aborted, and with `exhausted` when the account
   * has `maxWaiting` claims waiting.
   */
  acquire(claimant: Claimant, amount: number, signal?: AbortSignal): Promise<Grant>;
  /** The grant if it is possible without waiting. */
  tryAcquire(claimant: Claimant, amount: number): Grant | undefined;
  /** What could be granted to this account now without waiting. */
  available(claimant: Claimant): number;
}

/** The size of a pool. */
export interface FairPoolOptions {
  /** For error messages, for example `browser pages`. */
  readonly name: string;
  readonly capacity: number;
  /**
   * In addition to `capacity`, for accounts that use little while others fill it. An account gets a
   * part of the reserve only while all that it uses is within a quarter of the reserve (at least
   * 1). Default 0.
   */
  readonly reserve?: number;
  /**
   * Most waiting claims of one account; default: unlimited, for callers that are limited elsewhere.
   */
  readonly maxWaiting?: number;
}

/** Which part of a pool a grant is from. */
type Part = 'main' | 'reserve';

interface Waiter {
  readonly claimant: Claimant;
  readonly amount: number;
  readonly grant: (grant: Grant) => void;
}

/** Makes a pool of which nothing is used. It has no timers and need not be closed. */
export function createFairPool(options: FairPoolOptions): FairPool {
  const { capacity, reserve = 0, maxWaiting = Number.POSITIVE_INFINITY } = options;
  const reserveShare = Math.max(1, reserve / 4);
  /** What each account uses of both parts; an account that uses nothing is not in it. */
  const usedBy = createTransientMap<string, number>();
  const used = { main: 0, reserve: 0 };
  const queue = createTurnQueue<Waiter>();

  function fitsReserve({ accountId }: Claimant, amount: number): boolean {
    const all = (usedBy.get(accountId) ?? 0) + amount;
    return used.reserve + amount <= reserve && all <= reserveShare;
  }

  function changeUse(part: Part, { accountId }: Claimant, change: number): void {
    used[part] += change;
    const all = (usedBy.get(accountId) ?? 0) + change;
    if (all > 0) usedBy.set(accountId, all);
    else usedBy.delete(accountId);
  }

  function takeFrom(part: Part, claimant: Claimant, amount: number): Grant {
    changeUse(part, claimant, amount);
    return createGrant(amount, (change) => {
      changeUse(part, claimant, -change);
      serve();
    });
  }

  /** `isMainTaken`: an earlier claim waits for room in the capacity. */
  function tryGrant(claimant: Claimant, amount: number, isMainTaken: boolean): Grant | undefined {
    if (!isMainTaken && used.main + amount <= capacity) return takeFrom('main', claimant, amount);
    return fitsReserve(claimant, amount) ? takeFrom('reserve', claimant, amount) : undefined;
  }

  /** Grants what is possible, one claim of each account in turn. */
  function serve(): void {
    let isServed = queue.size > 0;
    while (isServed) {
      isServed = false;
      let isMainTaken = false;
      for (const { accountId, item } of queue.turns()) {
        const grant = tryGrant(item.claimant, item.amount, isMainTaken);
        if (grant === undefined) {
          // Otherwise small claims of other accounts would take all room that becomes free, and
          // this one would never be granted.
          isMainTaken = true;
          continue;
        }
        queue.endTurn(accountId);
        isServed = queue.size > 0;
        item.grant(grant);
      }
    }
  }

  function enqueue(claimant: Claimant, amount: number, signal?: AbortSignal): Promise<Grant> {
    if (queue.count(claimant.accountId) >= maxWaiting) throw tooManyWaiting(options.name);
    const { promise, resolve, reject } = Promise.withResolvers<Grant>();
    const onAbort = (): void => {
      if (!queue.remove(claimant, waiter)) return;
      reject(signal?.reason as Error);
      // Others may have waited behind this claim.
      serve();
    };
    const waiter: Waiter = {
      claimant,
      amount,
      grant(grant) {
        signal?.removeEventListener('abort', onAbort);
        resolve(grant);
      },
    };
    queue.add(claimant, waiter);
    signal?.addEventListener('abort', onAbort, { once: true });
    return promise;
  }

  function tryAcquire(claimant: Claimant, amount: number): Grant | undefined {
    if (queue.count(claimant.accountId) > 0) return undefined;
    return tryGrant(claimant, Math.min(amount, capacity), queue.size > 0);
  }

  return {
    get used() {
      return used.main + used.reserve;
    },
    get waiting() {
      return queue.size;
    },
    async acquire(claimant, amount, signal) {
      signal?.throwIfAborted();
      return tryAcquire(claimant, amount) ?? enqueue(claimant, Math.min(amount, capacity), signal);
    },
    tryAcquire,
    available({ accountId }) {
      const leftInReserve = Math.min(
        reserve - used.reserve,
        reserveShare - (usedBy.get(accountId) ?? 0),
      );
      return Math.max(0, queue.size > 0 ? 0 : capacity - used.main, leftInReserve);
    },
  };
}

/** Makes a grant; `giveBack` is called with each amount that it does not hold any more. */
function createGrant(amount: number, giveBack: (change: number) => void): Grant {
  const grant = {
    amount,
    split(asked: number): Grant {
      const moved = Math.max(0, Math.min(asked, grant.amount));
      grant.amount -= moved;
      return createGrant(moved, giveBack);
    },
    shrink(target: number): void {
      const left = Math.max(target, 0);
      const change = grant.amount - left;
      if (change <= 0) return;
      grant.amount = left;
      giveBack(change);
    },
    release: () => grant.shrink(0),
  };
  return grant;
}

function tooManyWaiting(name: string): DomainError {
  return new DomainError(
    'exhausted',
    'too_many_waiting',
    `Too many calls of this account wait for ${name}.`,
    { retryAfterMs: 1_000 },
  );
}
