import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultSettings } from '../src/domain/crawler-settings.ts';
import type { Job } from '../src/domain/job.ts';
import { createRid } from '../src/domain/rid.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import type { Lease, Store } from '../src/store/store.ts';

// Measures how long a look from host to host takes on the embedded store. The queues are a short one, one
// with a million URLs of one host, longer ones of 100,000 and of a million hosts, and two with priorities.
// Every look continues where the one before has stopped. Also measures how long the list of the longest hosts takes, and the
// longest look of another crawler at the same time.

interface Case {
  readonly title: string;
  readonly hosts: number;
  readonly each: number;
  /** Whether URLs have one of three priorities. */
  readonly hasPriorities?: boolean;
  /** URLs of a further host, which fall due in an hour. */
  readonly delayed?: number;
}

const CASES: readonly Case[] = [
  { title: '10 hosts, 1,000 URLs each', hosts: 10, each: 1_000 },
  { title: '1 host, 1,000,000 URLs', hosts: 1, each: 1_000_000 },
  { title: '100,000 hosts, 10 URLs each', hosts: 100_000, each: 10 },
  { title: '1,000,000 hosts, 1 URL each', hosts: 1_000_000, each: 1 },
  {
    title: '100,000 hosts, 10 URLs each of three priorities',
    hosts: 100_000,
    each: 10,
    hasPriorities: true,
  },
  {
    title: '10 hosts, 1,000 URLs each of three priorities, 200,000 URLs in an hour',
    hosts: 10,
    each: 1_000,
    hasPriorities: true,
    delayed: 200_000,
  },
];
const BATCH = 1_000;
const LOOKS = 300;
const LIMIT = 200;
/** As many as a list of hosts chooses from. */
const LISTED = 10_000;
const LIMITS = { crawlerQueue: 1e9, accountQueue: 1e9 };
const LEASE_MS = 3_600_000;
const accountId = createRid(new Date());
const silent = () => undefined;

async function makeCrawler(store: Store, name: string): Promise<Lease> {
  const now = new Date();
  const crawlerId = createRid(now);
  await store.crawlers.insert({
    ...defaultSettings,
    crawlerId,
    accountId,
    name,
    tokenType: 'normal',
    delivery: 'storage',
    callbackUrl: undefined,
    pausedByUser: false,
    pausedByMonitor: false,
    webhookSecrets: [],
    createdAt: now,
    updatedAt: now,
  });
  const lease = await store.queue.acquire(crawlerId, 'bench', LEASE_MS, now);
  if (lease === undefined) throw new Error('no lease');
  return lease;
}

function jobOf(crawlerId: string, host: string, priority = 5): Job {
  const createdAt = new Date();
  return {
    rid: createRid(createdAt),
    crawlerId,
    accountId,
    host,
    url: `https://${host}/a/path/of/usual/length?and=query`,
    method: 'GET',
    body: undefined,
    contentType: undefined,
    parameters: {},
    callbackHeaders: [],
    priority,
    queueDeadline: undefined,
    createdAt,
  };
}

async function push(store: Store, crawlerId: string, jobs: readonly Job[]): Promise<void> {
  await store.queue.push({ crawlerId, accountId, jobs }, LIMITS, new Date());
}

async function fill(
  store: Store,
  crawlerId: string,
  { hosts, each, hasPriorities = false, delayed = 0 }: Omit<Case, 'title'>,
): Promise<void> {
  for (let from = 0; from < hosts * each; from += BATCH) {
    const jobs = Array.from({ length: BATCH }, (_, n) =>
      jobOf(crawlerId, `h${(from + n) % hosts}.example`, hasPriorities ? 4 + (n % 3) : 5),
    );
    await push(store, crawlerId, jobs);
  }
  for (let from = 0; from < delayed; from += BATCH) {
    const notBefore = new Date(Date.now() + LEASE_MS);
    const jobs = Array.from({ length: BATCH }, () => ({
      ...jobOf(crawlerId, 'later.example'),
      notBefore,
    }));
    await push(store, crawlerId, jobs);
  }
}

/** The time of each look in ms, in ascending order. */
async function look(store: Store, lease: Lease): Promise<number[]> {
  const times: number[] = [];
  let after = '';
  for (let n = 0; n < LOOKS; n += 1) {
    const hosts = { perHost: 4, rest: LIMIT, after, closed: [], full: [] };
    const startedAt = performance.now();
    const found = await store.queue.turn(lease, { look: { limit: LIMIT, hosts } }, new Date());
    times.push(performance.now() - startedAt);
    if (found.jobs.length === 0) throw new Error('the look found nothing');
    after = found.lastHost ?? '';
  }
  return times.sort((a, b) => a - b);
}

/** The time of one list of hosts, and of the longest look of another crawler during it, in ms. */
async function list(store: Store, crawlerId: string, other: Lease) {
  const startedAt = performance.now();
  let isRead = false;
  const read = store.hosts.longest(crawlerId, LISTED).then(() => {
    isRead = true;
    return performance.now() - startedAt;
  });
  let longest = 0;
  while (!isRead) {
    const lookedAt = performance.now();
    await store.queue.turn(other, { look: { limit: LIMIT } }, new Date());
    longest = Math.max(longest, performance.now() - lookedAt);
  }
  return { took: await read, longest };
}

const dataDir = await mkdtemp(join(tmpdir(), 'queued-crawler-looks-'));
const logger = { debug: silent, info: silent, warn: silent, error: silent };
const { store } = await openSqliteStore({ dataDir, logger });
try {
  await store.accounts.create({
    accountId,
    name: 'bench',
    email: '',
    tokenHashes: { normal: 'n', javascript: 'j' },
    limits: {},
    createdAt: new Date(),
  });
  const other = await makeCrawler(store, 'other');
  await fill(store, other.crawlerId, { hosts: 10, each: 1_000 });
  for (const { title, ...queue } of CASES) {
    const lease = await makeCrawler(store, title);
    await fill(store, lease.crawlerId, queue);
    const times = await look(store, lease);
    const at = (part: number): string => (times[Math.floor(times.length * part)] ?? 0).toFixed(2);
    const { took, longest } = await list(store, lease.crawlerId, other);
    console.log(
      `${title}: looks p50 ${at(0.5)} ms, p95 ${at(0.95)} ms; list of hosts ${took.toFixed(0)} ms, look of another crawler at that time at most ${longest.toFixed(0)} ms`,
    );
  }
} finally {
  await store.close();
  await rm(dataDir, { recursive: true, force: true });
}
