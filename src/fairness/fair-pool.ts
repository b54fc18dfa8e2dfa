import { DomainError } from '../domain/errors.ts';

/** On whose behalf something of the pool is used. */
export interface Claimant {
  readonly accountId: string;
  /** Claims of one account are served in turn by crawler; absent for calls that belong to none. */
  readonly crawlerId?: string | undefined;
}

/** A part of the pool in use. */
export interface Grant {
  readonly amount: number;
  /** Moves `amount` of it, at most what it holds, to a grant of its own. */
  split(amount: number): Grant;
  /** Gives back all but `amount`; a larger amount than it holds changes nothing. */
  shrink(amount: number): void;
  /** Gives everything back; further calls do nothing. */
  release(): void;
}

/** Something that tenants share (slots, bytes), handed out fairly by account, then by crawler. */
export interface FairPool {
  /** In use now, the reserve included. */
  readonly used: number;
  /** Claims that wait now. */
  readonly waiting: number;
  /**
   * Waits for its turn and for room. An amount above the whole capacity is granted as the capacity.
   * Rejects with the signal's reason when aborted, and with `exhausted` when the account has
   * `maxWaiting` claims waiting.
   */
  acquire(claimant: Claimant, amount: number, signal?: AbortSignal): Promise<Grant>;
  /** The grant if it can be had without waiting. */
  tryAcquire(claimant: Claimant, amount: number): Grant | undefined;
  /** What could be granted to this account now without waiting. */
  available(claimant: Claimant): number;
}

/** How a pool shares. */
export interface FairPoolOptions {
  /** For error messages, for example `browser pages`. */
  readonly name: string;
  readonly capacity: number;
  /**
   * Beside `capacity`, for accounts that use little while others fill it: an account draws on the
   * reserve only while everything it uses is within a quarter of the reserve (at least 1). Default
   * 0.
   */
  readonly reserve?: number;
  /**
   * Most waiting claims of one account; default unlimited, for callers that are bounded otherwise.
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
  /** Waiting claims by crawler; the map's order is the order of turns. */
  readonly crawlers: Map<string, Waiter[]>;
}

/**
 * Makes a pool of which nothing is used. It starts no timer and holds nothing that has to be
 * closed.
 */
export function createFairPool(options: FairPoolOptions): FairPool {
  const { capacity, reserve = 0, maxWaiting = Number.POSITIVE_INFINITY } = options;
  const reserveShare = Math.max(1, reserve / 4);
  /** Accounts that use something or wait; the order of the waiting ones is the order of turns. */
  const accounts = new Map<string, Usage>();
  let usedMain = 0;
  let usedReserve = 0;
  let waiting = 0;

  function usageOf(accountId: string): Usage {
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

  function grantFrom(part: 'main' | 'reserve', claimant: Claimant, amount: number): Grant {
    use(part, usageOf(claimant.accountId), amount);
    return grantOf(part, claimant, amount);
  }

  function use(part: 'main' | 'reserve', usage: Usage, change: number): void {
    usage.used += change;
    if (part === 'main') usedMain += change;
    else usedReserve += change;
  }

  function grantOf(part: 'main' | 'reserve', claimant: Claimant, amount: number): Grant {
    let held = amount;
    const giveBack = (change: number): void => {
      if (change <= 0) return;
      held -= change;
      const usage = usageOf(claimant.accountId);
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
        return grantOf(part, claimant, moved);
      },
      shrink: (target) => giveBack(held - Math.max(target, 0)),
      release: () => giveBack(held),
    };
  }

  /** `mainIsTaken`: a claim that came earlier waits for room in the capacity. */
  function tryGrant(claimant: Claimant, amount: number, mainIsTaken: boolean): Grant | undefined {
    if (!mainIsTaken && usedMain + amount <= capacity) return grantFrom('main', claimant, amount);
    if (!fitsReserve(accounts.get(claimant.accountId), amount)) return undefined;
    return grantFrom('reserve', claimant, amount);
  }

  function nextOf(usage: Usage): [crawler: string, queue: Waiter[]] | undefined {
    for (const entry of usage.crawlers) return entry;
    return undefined;
  }

  function leave(usage: Usage, crawler: string, queue: Waiter[]): void {
    usage.waiting -= 1;
    waiting -= 1;
    usage.crawlers.delete(crawler);
    // To the end of its account's turns, if it waits for more.
    if (queue.length > 0) usage.crawlers.set(crawler, queue);
  }

  /** Grants what can be granted, one claim of each account in turn. */
  function serve(): void {
    let served = waiting > 0;
    while (served) {
      served = false;
      let mainIsTaken = false;
      for (const [accountId, usage] of Array.from(accounts)) {
        const [crawler, queue] = nextOf(usage) ?? [];
        const first = queue?.[0];
        if (crawler === undefined || queue === undefined || first === undefined) continue;
        const grant = tryGrant(first.claimant, first.amount, mainIsTaken);
        if (grant === undefined) {
          // Otherwise small claims of others would take each room that becomes free, and this one
          // would wait for ever.
          mainIsTaken = true;
          continue;
        }
        queue.shift();
        leave(usage, crawler, queue);
        accounts.delete(accountId);
        accounts.set(accountId, usage);
        served = waiting > 0;
        first.grant(grant);
      }
    }
  }

  function enqueue(claimant: Claimant, amount: number, signal: AbortSignal | undefined) {
    const usage = usageOf(claimant.accountId);
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
      // It may have been what others waited behind.
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
      const queued = usage !== undefined && usage.waiting > 0;
      const grant = queued ? undefined : tryGrant(claimant, wanted, waiting > 0);
      return grant ?? enqueue(claimant, wanted, signal);
    },
    tryAcquire(claimant, amount) {
      const usage = accounts.get(claimant.accountId);
      if (usage !== undefined && usage.waiting > 0) return undefined;
      return tryGrant(claimant, Math.min(amount, capacity), waiting > 0);
    },
    available(claimant) {
      const used = accounts.get(claimant.accountId)?.used ?? 0;
      const ofReserve = Math.min(reserve - usedReserve, reserveShare - used);
      return Math.max(0, waiting > 0 ? 0 : capacity - usedMain, ofReserve);
    },
  };
}
