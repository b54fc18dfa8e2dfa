import type { Account } from '../../../src/domain/account.ts';
import type { Crawler, CrawlerCounters } from '../../../src/domain/crawler.ts';
import { defaultSettings } from '../../../src/domain/crawler-settings.ts';
import type { Delivery } from '../../../src/domain/delivery.ts';
import type { Job, QueuedJob } from '../../../src/domain/job.ts';
import { createRid } from '../../../src/domain/rid.ts';
import { hostOf } from '../../../src/domain/target-url.ts';
import type {
  DeliveryOutcome,
  JobOutcome,
  Lease,
  PushLimits,
  PushReceipt,
  Store,
  StoredScreenshot,
  TurnReceipt,
  Verdict,
} from '../../../src/store/store.ts';

/** A store under test: fresh and empty. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
  /**
   * The same data after a crash and a restart, or as another process sees it. The first store is
   * not used any more.
   */
  reopen(): Promise<Store>;
}

/** Opens one. */
export type OpenStore = () => Promise<OpenedStore>;

/** Limits that no test meets by accident. */
export const LIMITS: PushLimits = { crawlerQueue: 100_000, accountQueue: 1_000_000 };

/** How long the leases of {@link StoreBench.lease} live. */
export const TTL_MS = 15_000;

// Ahead of the machine's clock: a database that expires records by itself does so by its own clock.
const start = Date.parse('2040-05-17T10:00:00Z');

/** The moment `ms` after the tests' own beginning, 2040-05-17 10:00 UTC. */
export function at(ms: number): Date {
  return new Date(start + ms);
}

/** A new identifier. */
export function newId(): string {
  return createRid(new Date());
}

let names = 0;
const newName = (): string => `name-${String(names++).padStart(6, '0')}`;

/** An account that is nowhere yet. */
export function makeAccount(overrides: Partial<Account> = {}): Account {
  const accountId = newId();
  return {
    accountId,
    name: newName(),
    email: 'owner@example.com',
    tokenHashes: { normal: `${accountId}-n`, javascript: `${accountId}-j` },
    limits: {},
    createdAt: at(0),
    ...overrides,
  };
}

/** A storage crawler that is nowhere yet; a webhook one when `delivery` says so. */
export function makeCrawler(accountId: string, overrides: Partial<Crawler> = {}): Crawler {
  return {
    crawlerId: newId(),
    accountId,
    name: newName(),
    tokenType: 'normal',
    delivery: 'storage',
    callbackUrl: overrides.delivery === 'webhook' ? `https://example.com/${newId()}` : undefined,
    ...defaultSettings,
    pausedByUser: false,
    pausedByMonitor: false,
    webhookSecrets: [],
    createdAt: at(0),
    updatedAt: at(0),
    ...overrides,
  };
}

/** A job for the crawler, made at the tests' beginning. */
export function makeJob(crawler: Crawler, overrides: Partial<Job> = {}): Job {
  const url = overrides.url ?? 'https://example.com/page?and=query';
  return {
    rid: newId(),
    crawlerId: crawler.crawlerId,
    accountId: crawler.accountId,
    host: hostOf(url),
    url,
    method: 'GET',
    body: undefined,
    contentType: undefined,
    parameters: {},
    callbackHeaders: [],
    priority: 5,
    queueDeadline: undefined,
    createdAt: at(0),
    ...overrides,
  };
}

/** `count` jobs for the crawler. */
export function makeJobs(crawler: Crawler, count: number, overrides: Partial<Job> = {}): Job[] {
  return Array.from({ length: count }, () => makeJob(crawler, overrides));
}

/** A screenshot of `size` bytes that expires at `at(100)`. */
export function makeScreenshot(accountId: string, size: number): StoredScreenshot {
  const bytes = new Uint8Array(size).map((_, n) => n);
  return { id: newId(), accountId, contentType: 'image/jpeg', bytes, expiresAt: at(100) };
}

/** A store and the steps that tests share. Everything happens at `at(0)` by default. */
export interface StoreBench {
  readonly store: Store;
  /** From now on `store` is what the next process has. */
  crash(): Promise<void>;
  account(overrides?: Partial<Account>): Promise<Account>;
  /** Inserts a crawler, with an account of its own unless `overrides` names one. */
  crawler(overrides?: Partial<Crawler>): Promise<Crawler>;
  /** Pushes jobs in one request. */
  push(jobs: readonly Job[], now?: Date, limits?: PushLimits): Promise<PushReceipt>;
  /** Takes the lease for 15 s; throws if it is refused. */
  lease(crawler: Crawler, now?: Date, owner?: string): Promise<Lease>;
  /** Pushes `count` jobs, takes the lease and claims them all. */
  running(crawler: Crawler, count: number): Promise<{ lease: Lease; jobs: QueuedJob[] }>;
  counters(crawler: Crawler): Promise<CrawlerCounters>;
}

/** Wraps an open store. */
export function createBench(opened: {
  readonly store: Store;
  reopen?(): Promise<Store>;
}): StoreBench {
  let { store } = opened;
  const bench: StoreBench = {
    get store() {
      return store;
    },
    async crash() {
      if (opened.reopen === undefined) throw new Error('cannot be reopened');
      store = await opened.reopen();
    },
    async account(overrides) {
      const account = makeAccount(overrides);
      await store.accounts.create(account);
      return account;
    },
    async crawler(overrides) {
      const accountId = overrides?.accountId ?? (await bench.account()).accountId;
      return (await store.crawlers.insert(makeCrawler(accountId, overrides))).crawler;
    },
    async push(jobs, now = at(0), limits = LIMITS) {
      const { crawlerId = '', accountId = '' } = jobs[0] ?? {};
      return store.queue.push({ crawlerId, accountId, jobs }, limits, now);
    },
    async lease(crawler, now = at(0), owner = 'owner') {
      const lease = await store.queue.acquire(crawler.crawlerId, owner, TTL_MS, now);
      if (lease === undefined) throw new Error('the lease was refused');
      return lease;
    },
    async running(crawler, count) {
      await bench.push(makeJobs(crawler, count));
      const lease = await bench.lease(crawler);
      const { jobs } = await claimJobs(store, lease, count, at(0));
      return { lease, jobs };
    },
    async counters(crawler) {
      const found = (await store.crawlers.counters([crawler.crawlerId])).get(crawler.crawlerId);
      if (found === undefined) throw new Error('the crawler has no counters');
      return found;
    },
  };
  return bench;
}

/** A test that gets a fresh store and leaves nothing behind. */
export function withStore(
  open: OpenStore,
  use: (bench: StoreBench) => Promise<void>,
): () => Promise<void> {
  return async () => {
    await using opened = await open();
    await use(createBench(opened));
  };
}

/** Claims as a run does: looks for jobs, and starts all it finds at once. */
export async function claimJobs(
  store: Store,
  lease: Lease,
  limit: number,
  now: Date,
  maxBytes?: number,
): Promise<{ jobs: QueuedJob[]; leaseLost: boolean }> {
  const look = { limit, ...(maxBytes === undefined ? {} : { maxBytes }) };
  const { jobs, leaseLost } = await store.queue.turn(lease, { look }, now);
  if (jobs.length === 0) return { jobs: [], leaseLost };
  const started = jobs.map(({ rid, attempt }) => ({ rid, attempt: attempt + 1, startedAt: now }));
  const receipt = await store.queue.turn(lease, { started }, now);
  const running = jobs
    .filter(({ rid }) => !receipt.lost.includes(rid))
    .map((job): QueuedJob => {
      const firstTriedAt = job.firstTriedAt ?? now;
      return { ...job, state: 'running', attempt: job.attempt + 1, firstTriedAt };
    });
  return { jobs: running, leaseLost: receipt.leaseLost };
}

/** Renews a lease; false when it was lost. */
export async function renewLease(
  store: Store,
  lease: Lease,
  ttlMs: number,
  now: Date,
): Promise<boolean> {
  return (await store.queue.visit([lease], now, ttlMs))[0]?.held ?? false;
}

/** Ends jobs under a lease. */
export async function finishJobs(
  store: Store,
  ended: readonly JobOutcome[],
  now: Date,
  lease: Lease,
): Promise<Pick<TurnReceipt, 'verdicts' | 'held'>> {
  const { verdicts, held } = await store.queue.turn(lease, { ended }, now);
  return { verdicts, held };
}

/** Claims due deliveries under a lease. */
export async function claimDeliveries(
  store: Store,
  lease: Lease,
  limit: number,
  maxBytes: number,
  now: Date,
): Promise<readonly Delivery[]> {
  return (await store.queue.turn(lease, { deliveries: { limit, maxBytes } }, now)).claimed;
}

/** Ends delivery attempts of one crawler, as a run does whose lease has lapsed since. */
export async function settleDeliveries(
  store: Store,
  settled: readonly DeliveryOutcome[],
  now: Date,
): Promise<readonly Verdict[]> {
  const lease = { crawlerId: settled[0]?.crawlerId ?? '', owner: 'former', epoch: -1 };
  return (await store.queue.turn(lease, { settled }, now)).settled;
}

/** The one element; throws for any other number. */
export function only<T>(elements: readonly T[]): T {
  const [first, ...others] = elements;
  if (first === undefined || others.length > 0) {
    throw new Error(`expected one element, found ${elements.length}`);
  }
  return first;
}
