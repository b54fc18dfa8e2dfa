import type { Account, ReadUsage } from '../../domain/account.ts';
import { addCount } from '../../domain/add-count.ts';
import type { CrawlHold } from '../../domain/attention.ts';
import type { Clock } from '../../domain/clock.ts';
import { HOUR_MS } from '../../domain/durations.ts';
import type { DomainError } from '../../domain/errors.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import {
  type AccountLimits,
  type AccountUsage,
  effectiveLimits,
  exceedsLimit,
  quotaExceeded,
} from '../../domain/quotas.ts';
import type { Store } from '../../store/store.ts';
import { createExpiringCache } from '../expiring-cache.ts';
import { type DiskRoom, type DiskShortage, unlimitedDisk } from './disk-room.ts';
import { createProbePacer } from './probe-pacer.ts';
import { createTokenBuckets } from './token-bucket.ts';

type Holder = Pick<Account, 'accountId' | 'limits'>;

/**
 * Limits of an account and their use; `used` is undefined for rates that each process counts for
 * itself.
 */
export type QuotaReport = Readonly<
  Record<keyof AccountLimits, { readonly limit: number; readonly used: number | undefined }>
>;

/** Enforces what each account may use of the shared resources. */
export interface Quotas {
  limits(account: Holder): AccountLimits;
  /** Drops what is cached of an account whose limits have changed. */
  forget(accountId: string): void;
  report(account: Holder): Promise<QuotaReport>;
  /** Counts one call that is not a push. Throws `exhausted` when the account makes too many. */
  takeRequest(account: Holder): void;
  /**
   * Decides how many of the jobs, from the first on, may be queued, given the bytes of each, and
   * returns the error for the others. The bytes count at once. `usage` saves a look at the account.
   */
  admit(
    account: Holder,
    sizes: readonly number[],
    usage?: ReadUsage,
  ): Promise<{ readonly admitted: number; readonly refusal: DomainError | undefined }>;
  /**
   * Throws `invalid` when the account has reached its storage quota, `unavailable` when the disk is
   * almost full; `field` is the parameter that
   * asks for something to be kept.
   */
  assertStorage(account: Holder, field: 'store' | 'screenshot'): Promise<void>;
  /**
   * Counts a page of up to `bytes` that is to be stored, so that pages crawled at once exceed the
   * storage quota by one at most. Throws as {@link Quotas.assertStorage} does, and `exhausted` while
   * those that are being crawled may take the rest. The returned function ends that, with the bytes
   * that were stored.
   */
  reserveStorage(account: Holder, bytes: number): Promise<(storedBytes: number) => void>;
  /**
   * Why no result of a further crawl of the account may be stored; empty when one may. While there is
   * a reason, URLs stay in their queues.
   */
  holds(accountId: string): Promise<readonly CrawlHold[]>;
  /** The same of all accounts: what holds back each of them, and what single ones. Reads all accounts. */
  allHolds(): Promise<AllHolds>;
  /**
   * Whether a monitoring probe may be made now: 0, or the milliseconds until its turn (see
   * {@link createProbePacer}). A host that never acknowledged a delivery of the account (see
   * `proveCallback`) has a lower limit, because it may not belong to the client. Probes of paused
   * crawlers have limits of their own, so that none waits behind those of healthy ones.
   */
  probeWaitMs(probe: {
    readonly id: string;
    readonly accountId: string;
    readonly callbackUrl: string;
    readonly isPaused: boolean;
  }): Promise<number>;
  /** Records that a delivery of the account was acknowledged at this callback URL. */
  proveCallback(accountId: string, callbackUrl: string): void;
  /** The most deliveries that may be replayed now. */
  replaysLeft(account: Holder): Promise<number>;
  /** Counts replayed deliveries. Throws `exhausted` unless all of them fit. */
  takeReplays(account: Holder, count: number): Promise<void>;
}

/** What holds back crawls. */
export interface AllHolds {
  readonly everywhere: readonly CrawlHold[];
  readonly byAccount: ReadonlyMap<string, readonly CrawlHold[]>;
}

/** How old a cached figure of an account's use may be. A quota can be exceeded for this long. */
const FRESH_MS = 1_000;
const MAX_ACCOUNTS = 10_000;
/** The allowance of a rate quota holds this many seconds' worth of calls. */
const BURST_SECONDS = 10;
/** Probes a minute of a host that never acknowledged a delivery. */
const UNPROVEN_PROBES_PER_MINUTE = 60;
const MAX_PROVEN = 50_000;
/** Only expiry and deletion free storage, so an earlier retry does not help. */
const STORAGE_RETRY_MS = 60_000;
const RESERVED_RETRY_MS = 1_000;
const QUEUE_RETRY_MS = 5_000;

const NOTHING: AccountUsage = {
  crawlers: 0,
  concurrency: 0,
  storedBytes: 0,
  queuedBytes: 0,
  queued: 0,
};
const NOTHING_ADDED = { addedBytes: 0, storedBytes: 0 };

/** The cached use of an account, and the bytes this process has queued and stored since it was read. */
interface Known {
  readonly usage: AccountUsage;
  readonly limits: AccountLimits;
  addedBytes: number;
  storedBytes: number;
}

/** Makes the quotas; `defaults` are the limits of accounts that have none of their own. */
export function createQuotas(deps: {
  readonly store: Pick<Store, 'accounts' | 'rates'>;
  readonly clock: Clock;
  readonly defaults: AccountLimits;
  /** Default: any. */
  readonly disk?: DiskRoom;
}): Quotas {
  const { store, clock, defaults, disk = unlimitedDisk } = deps;
  const buckets = createTokenBuckets(clock);
  const pacer = createProbePacer(clock);
  const proven = createLruMap<string, true>({ maxEntries: MAX_PROVEN });
  /** The last one of `proven`, as it was given: most calls repeat the one before. */
  let lastProven = '';
  const known = createExpiringCache<Known>({
    clock,
    ttlMs: FRESH_MS,
    maxEntries: MAX_ACCOUNTS,
  });

  /** Bytes of pages that are being crawled to be stored, by account. */
  const reserved = new Map<string, number>();

  const limits = (account: Holder): AccountLimits => effectiveLimits(account.limits, defaults);

  async function loadKnown(
    accountId: string,
    read?: Pick<Known, 'usage' | 'limits'>,
  ): Promise<Known> {
    const found = await known.get(accountId, async () => {
      if (read !== undefined) return { ...read, ...NOTHING_ADDED };
      const [account, usage] = await Promise.all([
        store.accounts.get(accountId),
        store.accounts.usage(accountId),
      ]);
      if (account === undefined || usage === undefined) return undefined;
      return { usage, limits: limits(account), ...NOTHING_ADDED };
    });
    return found ?? { usage: NOTHING, limits: defaults, ...NOTHING_ADDED };
  }

  const isFull = (limit: number, stored: number): boolean => exceedsLimit(limit, stored, 1);

  /** The bytes that an account has stored. Throws as `assertStorage` does. */
  async function storageOf(account: Holder, field: 'store' | 'screenshot'): Promise<number> {
    const full = await disk.refusal();
    if (full !== undefined) throw full;
    const limit = limits(account).storageBytes;
    const { usage, storedBytes } = await loadKnown(account.accountId);
    const used = usage.storedBytes + storedBytes;
    if (!isFull(limit, used)) return used;
    throw quotaExceeded('storageBytes', limit, used, { kind: 'invalid', field });
  }

  const replayAllowance = (account: Holder, count: number) =>
    store.rates.takeWhole(
      `replays:${account.accountId}`,
      count,
      { capacity: limits(account).replaysPerHour, refillMs: HOUR_MS },
      clock.now(),
    );

  return {
    limits,
    forget: known.forget,

    async report(account) {
      const own = limits(account);
      const usage = (await store.accounts.usage(account.accountId)) ?? NOTHING;
      const replays = own.replaysPerHour === 0 ? undefined : await replayAllowance(account, 0);
      const used = {
        crawlers: usage.crawlers,
        concurrency: usage.concurrency,
        storageBytes: usage.storedBytes,
        queueBytes: usage.queuedBytes,
        requestsPerSecond: undefined,
        probesPerMinute: undefined,
        replaysPerHour: replays === undefined ? undefined : own.replaysPerHour - replays.left,
      };
      const names = Object.keys(used) as (keyof AccountLimits)[];
      return Object.fromEntries(
        names.map((name) => [name, { limit: own[name], used: used[name] }]),
      ) as QuotaReport;
    },

    takeRequest(account) {
      const perSecond = limits(account).requestsPerSecond;
      if (perSecond === 0) return;
      const key = `requests:${account.accountId}`;
      const retryAfterMs = buckets.take(key, perSecond, perSecond * BURST_SECONDS);
      if (retryAfterMs === 0) return;
      throw quotaExceeded('requestsPerSecond', perSecond, perSecond, {
        kind: 'exhausted',
        retryAfterMs,
      });
    },

    async admit(account, sizes, given) {
      const full = await disk.refusal();
      if (full !== undefined) return { admitted: 0, refusal: full };
      const own = limits(account);
      // A stream of pushes has its caller's account from when it began.
      const isFresh = given !== undefined && performance.now() - given.readAtMs < FRESH_MS;
      const read = isFresh ? { usage: given, limits: own } : undefined;
      const now = await loadKnown(account.accountId, read);
      const { usage } = now;
      if (isFull(own.storageBytes, usage.storedBytes)) {
        const refusal = quotaExceeded('storageBytes', own.storageBytes, usage.storedBytes, {
          kind: 'exhausted',
          retryAfterMs: STORAGE_RETRY_MS,
        });
        return { admitted: 0, refusal };
      }
      let admitted = 0;
      for (const size of sizes) {
        const used = usage.queuedBytes + now.addedBytes;
        if (exceedsLimit(own.queueBytes, used, size)) {
          const refusal = quotaExceeded('queueBytes', own.queueBytes, used, {
            kind: 'exhausted',
            retryAfterMs: QUEUE_RETRY_MS,
          });
          return { admitted, refusal };
        }
        now.addedBytes += size;
        admitted += 1;
      }
      return { admitted, refusal: undefined };
    },

    async assertStorage(account, field) {
      await storageOf(account, field);
    },

    async reserveStorage(account, bytes) {
      const { accountId } = account;
      const used = await storageOf(account, 'store');
      const limit = limits(account).storageBytes;
      const ahead = reserved.get(accountId) ?? 0;
      if (isFull(limit, used + ahead)) {
        throw quotaExceeded('storageBytes', limit, used + ahead, {
          kind: 'exhausted',
          field: 'store',
          retryAfterMs: RESERVED_RETRY_MS,
        });
      }
      addCount(reserved, accountId, bytes);
      return (storedBytes) => {
        addCount(reserved, accountId, -bytes);
        // A reading of the account may be older than the page.
        const cached = known.peek(accountId);
        if (cached !== undefined) cached.storedBytes += storedBytes;
      };
    },

    async holds(accountId) {
      const [shortage, { usage, limits: own }] = await Promise.all([
        disk.shortage(),
        loadKnown(accountId),
      ]);
      const { storageBytes } = own;
      return [
        ...diskHolds(shortage),
        ...(isFull(storageBytes, usage.storedBytes)
          ? [storageHold(usage.storedBytes, storageBytes)]
          : []),
      ];
    },

    async allHolds() {
      const [shortage, full] = await Promise.all([
        disk.shortage(),
        store.accounts.full(defaults.storageBytes),
      ]);
      const byAccount = new Map(
        full.map(({ accountId, usedBytes, limitBytes }) => [
          accountId,
          [storageHold(usedBytes, limitBytes)],
        ]),
      );
      return { everywhere: diskHolds(shortage), byAccount };
    },

    async probeWaitMs({ id, accountId, callbackUrl, isPaused }) {
      const { probesPerMinute } = (await loadKnown(accountId)).limits;
      const target = probeTarget(accountId, callbackUrl);
      const kind = isPaused ? 'paused' : 'running';
      return pacer.waitMs(id, [
        {
          key: `${kind} ${target}`,
          perMinute: proven.has(target) ? 0 : UNPROVEN_PROBES_PER_MINUTE,
        },
        { key: `${kind} ${accountId}`, perMinute: probesPerMinute },
      ]);
    },

    proveCallback(accountId, callbackUrl) {
      const given = `${accountId}@${callbackUrl}`;
      if (given === lastProven) return;
      lastProven = given;
      const target = probeTarget(accountId, callbackUrl);
      proven.set(target, true);
    },

    async replaysLeft(account) {
      if (limits(account).replaysPerHour === 0) return Number.MAX_SAFE_INTEGER - 1;
      return (await replayAllowance(account, 0)).left;
    },

    async takeReplays(account, count) {
      const { replaysPerHour } = limits(account);
      if (replaysPerHour === 0) return;
      const { granted, left, retryAfterMs } = await replayAllowance(account, count);
      if (granted) return;
      throw quotaExceeded('replaysPerHour', replaysPerHour, replaysPerHour - left, {
        kind: 'exhausted',
        retryAfterMs,
      });
    },
  };
}

function diskHolds(shortage: DiskShortage | undefined): readonly CrawlHold[] {
  if (shortage === undefined) return [];
  const { freeBytes, minFreeBytes } = shortage;
  const [free, least] = [roundMegabytes(freeBytes), roundMegabytes(minFreeBytes)];
  const detail = `the disk of the service has about ${free} free, less than the ${least} of MIN_FREE_BYTES`;
  return [{ reason: 'disk_full', detail }];
}

function storageHold(used: number, limit: number): CrawlHold {
  const [stored, most] = [used, limit].map((bytes) => bytes.toLocaleString('en-US'));
  const detail = `the account has stored ${stored} bytes of the ${most} that its quota storage_bytes allows`;
  return { reason: 'storage_full', detail };
}

/** Two digits: the text of a hold is part of what streams compare, and a disk changes all the time. */
function roundMegabytes(bytes: number): string {
  const megabytes = Number((bytes / 1_000_000).toPrecision(2));
  return `${megabytes.toLocaleString('en-US')} MB`;
}

function probeTarget(accountId: string, callbackUrl: string): string {
  return `${accountId}@${URL.parse(callbackUrl)?.host ?? callbackUrl}`;
}
