import { DomainError } from '../domain/errors.ts';

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
   * In addition to `capacity`, for accounts that use little while others fill it: an account gets a
   * part of the reserve only while all that it uses is within a quarter of the reserve (at least
   * 1). Default 0.
   */
  readonly reserve?: number;
  /**
   * Most waiting claims of one account; default: unlimited, for callers that are limited elsewhere.
   */
  readonly maxWaiting?: number;
}

interface Waiter {
  readonly claimant: Claimant;
  readonly amount: number;
  readonly grant: (grant: Grant) => void;
}

interface Usage {
  used: number;
  waiting: number;
  /** Waiting claims by crawler, in the order of turns. */
  readonly crawlers: Map<string, Waiter[]>;
}

/** Makes a pool of which nothing is used. It has no timers and need not be closed. */
export function createFairPool(options: FairPoolOptions): FairPool {
  const { capacity, reserve = 0, maxWaiting = Number.POSITIVE_INFINITY } = options;
  const reserveShare = Math.max(1, reserve / 4);
  /** Accounts that use something or wait, in the order of turns. */
  const accounts = new Map<string, Usage>();
  let usedMain = 0;
  let usedReserve = 0;
  let waiting = 0;

  function openUsage(accountId: string): Usage {
    const known = accounts.get(accountId);
    if (known !== undefined) return known;
    const usage = { used: 0, waiting: 0, crawlers: new Map() };
    accounts.set(accountId, usage);
    return usage;
  }

  function forgetIfIdle(accountId: string, usage: Usage): void {
    if (usage.used === 0 && usage.waiting === 0) accounts.delete(accountId);
  }

  function fitsReserve(usage: Usage | undefined, amount: number): boolean {
    return usedReserve + amount <= reserve && (usage?.used ?? 0) + amount <= reserveShare;
  }

  function takeFrom(part: 'main' | 'reserve', claimant: Claimant, amount: number): Grant {
    use(part, openUsage(claimant.accountId), amount);
    return createGrant(part, claimant, amount);
  }

  function use(part: 'main' | 'reserve', usage: Usage, change: number): void {
    usage.used += change;
    if (part === 'main') usedMain += change;
    else usedReserve += change;
  }

  function createGrant(part: 'main' | 'reserve', claimant: Claimant, amount: number): Grant {
    let held = amount;
    const giveBack = (change: number): void => {
      if (change <= 0) return;
      held -= change;
      const usage = openUsage(claimant.accountId);
      use(part, usage, -change);
      serve();
      forgetIfIdle(claimant.accountId, usage);
    };
    return {
      get amount() {
        return held;
      },
      split(asked) {
        const moved = Math.max(0, Math.min(asked, held));
        held -= moved;
        return createGrant(part, claimant, moved);
      },
      shrink: (target) => giveBack(held - Math.max(target, 0)),
      release: () => giveBack(held),
    };
  }

  /** `isMainTaken`: an earlier claim waits for room in the capacity. */
  function tryGrant(claimant: Claimant, amount: number, isMainTaken: boolean): Grant | undefined {
    if (!isMainTaken && usedMain + amount <= capacity) return takeFrom('main', claimant, amount);
    if (!fitsReserve(accounts.get(claimant.accountId), amount)) return undefined;
    return takeFrom('reserve', claimant, amount);
  }

  function nextQueue(usage: Usage): [crawler: string, queue: Waiter[]] | undefined {
    for (const entry of usage.crawlers) return entry;
    return undefined;
  }

  function removeFirst(usage: Usage, crawler: string, queue: Waiter[]): void {
    queue.shift();
    usage.waiting -= 1;
    waiting -= 1;
    usage.crawlers.delete(crawler);
    // A crawler with more claims goes to the end of the turns of its account.
    if (queue.length > 0) usage.crawlers.set(crawler, queue);
  }

  /** Grants what is possible, one claim of each account in turn. */
  function serve(): void {
    let served = waiting > 0;
    while (served) {
      served = false;
      let isMainTaken = false;
      for (const [accountId, usage] of Array.from(accounts)) {
        const [crawler, queue] = nextQueue(usage) ?? [];
        const first = queue?.[0];
        if (crawler === undefined || queue === undefined || first === undefined) continue;
        const grant = tryGrant(first.claimant, first.amount, isMainTaken);
        if (grant === undefined) {
          // Otherwise small claims of other accounts would take all room that becomes free, and
          // this one would never be granted.
          isMainTaken = true;
          continue;
        }
        removeFirst(usage, crawler, queue);
        accounts.delete(accountId);
        accounts.set(accountId, usage);
        served = waiting > 0;
        first.grant(grant);
      }
    }
  }

  function enqueue(claimant: Claimant, amount: number, signal: AbortSignal | undefined) {
    const usage = openUsage(claimant.accountId);
    if (usage.waiting >= maxWaiting) {
      forgetIfIdle(claimant.accountId, usage);
      throw new DomainError(
        'exhausted',
        'too_many_waiting',
        `Too many calls of this account wait for ${options.name}.`,
        { retryAfterMs: 1_000 },
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<Grant>();
    const crawler = claimant.crawlerId ?? '';
    const queue = usage.crawlers.get(crawler) ?? [];
    const onAbort = (): void => {
      const at = queue.indexOf(waiter);
      if (at < 0) return;
      queue.splice(at, 1);
      usage.waiting -= 1;
      waiting -= 1;
      if (queue.length === 0) usage.crawlers.delete(crawler);
      forgetIfIdle(claimant.accountId, usage);
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
    queue.push(waiter);
    usage.crawlers.set(crawler, queue);
    usage.waiting += 1;
    waiting += 1;
    signal?.addEventListener('abort', onAbort, { once: true });
    return promise;
  }

  return {
    get used() {
      return usedMain + usedReserve;
    },
    get waiting() {
      return waiting;
    },
    async acquire(claimant, amount, signal) {
      signal?.throwIfAborted();
      const wanted = Math.min(amount, capacity);
      const usage = accounts.get(claimant.accountId);
      const isQueued = usage !== undefined && usage.waiting > 0;
      const grant = isQueued ? undefined : tryGrant(claimant, wanted, waiting > 0);
      return grant ?? enqueue(claimant, wanted, signal);
    },
    tryAcquire(claimant, amount) {
      const usage = accounts.get(claimant.accountId);
      if (usage !== undefined && usage.waiting > 0) return undefined;
      return tryGrant(claimant, Math.min(amount, capacity), waiting > 0);
    },
    available(claimant) {
      const used = accounts.get(claimant.accountId)?.used ?? 0;
      const leftInReserve = Math.min(reserve - usedReserve, reserveShare - used);
      return Math.max(0, waiting > 0 ? 0 : capacity - usedMain, leftInReserve);
    },
  };
}
