import type { Crawler } from '../../../src/domain/crawler.ts';
import type { Job } from '../../../src/domain/job.ts';
import { createRid } from '../../../src/domain/rid.ts';
import type { JobOutcome, Lease, PushOutcome, Store } from '../../../src/store/store.ts';

/** A store under test: fresh and empty. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
  /** The same data after a crash and a restart, or as another process sees it. The first store is not used any more. */
  reopen(): Promise<Store>;
}

/** Opens one. */
export type OpenStore = () => Promise<OpenedStore>;

/** Limits that nothing in a test reaches. */
export const WIDE = { crawlerQueue: 1_000_000, accountQueue: 1_000_000 };

/** A moment from which tests count; not the present, so that nothing depends on it. */
export const START = new Date('2026-03-01T12:00:00Z');

/** `START` and some seconds. */
export function at(seconds: number): Date {
  return new Date(START.getTime() + seconds * 1_000);
}

/** A crawler of account `owner`, made in the store. */
export async function makeCrawler(
  store: Store,
  name: string,
  settings: Partial<Crawler> = {},
): Promise<Crawler> {
  const delivery = settings.delivery ?? 'storage';
  const { crawler } = await store.crawlers.insert({
    crawlerId: createRid(START),
    accountId: await ownerOf(store),
    name,
    tokenType: 'normal',
    delivery,
    callbackUrl: delivery === 'webhook' ? 'https://example.com/hook' : undefined,
    concurrency: 10,
    maxRetries: 3,
    retryWindowHours: 48,
    politeness: undefined,
    pausedByUser: false,
    pausedByMonitor: false,
    webhookSecrets: [],
    createdAt: START,
    updatedAt: START,
    ...settings,
  });
  return crawler;
}

async function ownerOf(store: Store): Promise<string> {
  const existing = await store.accounts.findByName('owner');
  if (existing !== undefined) return existing.accountId;
  const accountId = createRid(START);
  await store.accounts.create({
    accountId,
    name: 'owner',
    email: '',
    tokenHashes: { normal: 'hash-normal', javascript: 'hash-javascript' },
    createdAt: START,
  });
  return accountId;
}

/** A job of a crawler. */
export function jobOf(crawler: Crawler, more: Partial<Job> = {}): Job {
  const createdAt = more.createdAt ?? START;
  return {
    rid: createRid(createdAt),
    crawlerId: crawler.crawlerId,
    accountId: crawler.accountId,
    url: 'https://example.com/page',
    method: 'GET',
    body: undefined,
    contentType: undefined,
    parameters: {},
    callbackHeaders: [],
    queueDeadline: undefined,
    createdAt,
    ...more,
  };
}

/** Pushes jobs in one request; what became of each. */
export async function pushJobs(
  store: Store,
  crawler: Crawler,
  jobs: readonly Job[],
  limits = WIDE,
  now = START,
): Promise<readonly PushOutcome[]> {
  const { crawlerId, accountId } = crawler;
  const [receipt] = await store.queue.push([{ crawlerId, accountId, jobs }], limits, now);
  return receipt?.outcomes ?? [];
}

/** Pushes `count` jobs; their rids. */
export async function pushMany(store: Store, crawler: Crawler, count: number): Promise<string[]> {
  const jobs = Array.from({ length: count }, () => jobOf(crawler));
  await pushJobs(store, crawler, jobs);
  return jobs.map((job) => job.rid);
}

/** The crawler's lease for `owner`; throws when somebody else holds it. */
export async function leaseOf(
  store: Store,
  crawler: Crawler,
  owner = 'process-1',
  now = START,
): Promise<Lease> {
  const lease = await store.queue.acquire(crawler.crawlerId, owner, 60_000, now);
  if (lease === undefined) throw new Error('the lease is held by somebody else');
  return lease;
}

/** The crawler's counters. */
export async function countersOf(store: Store, crawler: Crawler) {
  const found = (await store.crawlers.counters([crawler.crawlerId])).get(crawler.crawlerId);
  if (found === undefined) throw new Error('the crawler has no counters');
  return found;
}

type Claimed = { readonly rid: string; readonly crawlerId: string; readonly attempt: number };

function endOf(job: Claimed, cbStatus: number) {
  const { rid, crawlerId, attempt } = job;
  return {
    rid,
    crawlerId,
    attempt,
    billed: cbStatus === 200,
    expiresAt: at(14 * 86_400),
    record: {
      rid,
      pushedUrl: 'https://example.com/page',
      url: 'https://example.com/final',
      cbStatus,
      originalStatus: cbStatus,
      contentType: 'text/html; charset=utf-8',
      body: new Uint8Array([1, 2, 3]),
      extras: { original_server: 'test' },
    },
  };
}

/** The end of a job into storage. */
export function stored(job: Claimed, cbStatus = 200): JobOutcome {
  return { ...endOf(job, cbStatus), kind: 'stored', tokenType: 'normal' };
}

/** The end of a job to a webhook. */
export function delivered(job: Claimed, held = true): JobOutcome {
  return { ...endOf(job, 200), kind: 'delivery', callbackHeaders: [['x-a', 'b']], held };
}

/** A failed try that is due again. */
export function retried(job: Claimed, dueAt: Date): JobOutcome {
  const { rid, crawlerId, attempt } = job;
  return { rid, crawlerId, attempt, kind: 'retry', dueAt };
}
