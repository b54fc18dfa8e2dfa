import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultSettings } from '../src/domain/crawler-settings.ts';
import type { Job } from '../src/domain/job.ts';
import { createRid } from '../src/domain/rid.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import type { Lease, Store } from '../src/store/store.ts';
import { claimJobs, finishJobs } from '../test/contract/store/store-harness.ts';

// Measures on the embedded store whether push, claim and finish cost the same with an empty queue,
// with a million queued jobs and with a million finished ones. The first line is what the others
// are compared with.

const MILLION = 1_000_000;
const SAMPLE = 20_000;
const CALLERS = 200;
const SLOTS = 50;
const LIMITS = { crawlerQueue: 10 * MILLION, accountQueue: 10 * MILLION };
const silent = () => undefined;

const crawlerId = createRid(new Date());
const accountId = createRid(new Date());

function job(): Job {
  const now = new Date();
  return {
    rid: createRid(now),
    crawlerId,
    accountId,
    host: 'example.com',
    url: 'https://example.com/a/path/of/usual/length?and=query',
    method: 'GET',
    body: undefined,
    contentType: undefined,
    parameters: {},
    callbackHeaders: [],
    priority: 5,
    queueDeadline: undefined,
    createdAt: now,
  };
}

async function push(store: Store, count: number, each: number, callers: number): Promise<number> {
  let left = count / each;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (left-- > 0) {
        const jobs = Array.from({ length: each }, job);
        await store.queue.push({ crawlerId, accountId, jobs }, LIMITS, new Date());
      }
    }),
  );
  return count / ((performance.now() - startedAt) / 1_000);
}

async function claimAndFinish(store: Store, lease: Lease, count: number): Promise<number> {
  const startedAt = performance.now();
  let done = 0;
  while (done < count) {
    const { jobs } = await claimJobs(store, lease, SLOTS, new Date());
    const expiresAt = new Date(Date.now() + 1_000_000_000);
    const outcomes = jobs.map((each) => ({
      kind: 'stored' as const,
      rid: each.rid,
      crawlerId,
      attempt: each.attempt,
      billed: true,
      tokenType: 'normal' as const,
      expiresAt,
      record: {
        rid: each.rid,
        pushedUrl: each.url,
        url: each.url,
        cbStatus: 200,
        originalStatus: 200,
        contentType: 'text/html',
        body: new Uint8Array(200),
        coding: 'gzip' as const,
        details: {},
      },
    }));
    await finishJobs(store, outcomes, new Date(), lease);
    done += jobs.length;
  }
  return count / ((performance.now() - startedAt) / 1_000);
}

function row(name: string, pushes: number, ends: number, first?: readonly [number, number]): void {
  const ratio = (value: number, of: number | undefined): string =>
    of === undefined ? '' : ` (${((value / of) * 100).toFixed(0)} %)`;
  const rss = Math.round(process.memoryUsage().rss / 1_000_000);
  console.log(
    `${name.padEnd(36)} ${Math.round(pushes)} pushes/s${ratio(pushes, first?.[0])}   ${Math.round(ends)} claimed and finished/s${ratio(ends, first?.[1])}   RSS ${rss} MB`,
  );
}

async function main(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'queued-crawler-flat-'));
  const logger = { debug: silent, info: silent, warn: silent, error: silent };
  const { store } = await openSqliteStore({ dataDir, logger });
  try {
    const now = new Date();
    const tokenHashes = { normal: 'n', javascript: 'j' };
    await store.accounts.create({
      accountId,
      name: 'bench',
      email: '',
      tokenHashes,
      limits: {},
      createdAt: now,
    });
    await store.crawlers.insert({
      crawlerId,
      accountId,
      name: 'flat',
      tokenType: 'normal',
      delivery: 'storage',
      callbackUrl: undefined,
      ...defaultSettings,
      concurrency: SLOTS,
      pausedByUser: false,
      pausedByMonitor: false,
      webhookSecrets: [],
      createdAt: now,
      updatedAt: now,
    });
    const lease = await store.queue.acquire(crawlerId, 'bench', 3_600_000, now);
    if (lease === undefined) throw new Error('no lease');
    const sample = async (): Promise<[number, number]> => [
      await push(store, SAMPLE, 1, CALLERS),
      await claimAndFinish(store, lease, SAMPLE),
    ];
    await sample();
    const first = await sample();
    row('nothing queued, little finished', ...first);
    await push(store, MILLION, 1_000, 2);
    row('1,000,000 queued', ...(await sample()), first);
    await claimAndFinish(store, lease, MILLION);
    row('1,000,000 finished', ...(await sample()), first);
  } finally {
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

await main();
