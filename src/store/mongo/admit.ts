import { type DomainError, databaseUnavailable } from '../../domain/errors.ts';
import type { Job } from '../../domain/job.ts';
import { chargedJobBytes } from '../../domain/quotas.ts';
import type { PushLimits, PushOutcome, PushReceipt } from '../store.ts';
import type { AccountIncrements } from './account-increments.ts';
import type { Collections, JobDocument } from './collections.ts';
import { duplicateIndexes } from './errors.ts';
import { toJobDocument } from './job-document.ts';
import { isLive, wakeNow } from './lease.ts';
import type { Ledger } from './ledger.ts';
import { recount } from './recount.ts';
import { confirm, reserveInAccount, reserveInCrawler, wentOver } from './reservations.ts';

/** A push that sleeps this long before its insert may be resolved by others before it wakes. */
const MAX_STALL_MS = 20_000;
/** One that may be repeated is taken over by its repetition after twice this time. */
const MAX_REPEATABLE_STALL_MS = 5_000;

/** A push that may be repeated: its request, and what becomes durable before it is counted. */
export interface RepeatablePush {
  readonly id: string;
  readonly request: string;
  /**
   * Keeps the outcomes, of which `twice` exist already. If a repetition has taken over, removes
   * those of the inserted jobs that it does not count on, and returns them.
   */
  keepOutcomes(
    outcomes: readonly PushOutcome[],
    twice: readonly string[],
  ): Promise<readonly string[]>;
}

/** Jobs on their way into the queue of one crawler. */
export interface Admission {
  readonly crawlerId: string;
  readonly accountId: string;
  /** The id of the push. */
  readonly id: string;
  readonly jobs: readonly Job[];
  readonly settings: number | undefined;
  readonly limits: PushLimits;
  readonly now: Date;
  readonly repeatable: RepeatablePush | undefined;
}

/** A number of jobs and the bytes that they count for. */
interface Amount {
  readonly n: number;
  readonly bytes: number;
}

/** What a push has reserved. */
interface Reservation {
  /** The jobs that there is room for. */
  readonly taken: Amount;
  /** Why the others are refused. */
  readonly refused: 'account_queue_full' | 'crawler_queue_full';
  /** The crawler's purges when the room was reserved. */
  readonly gen: number;
  /** The queued URLs of the account with these. */
  readonly queued: number;
  /** Gives room of the account back. */
  giveBack(more: Amount): Promise<void>;
}

/**
 * Accepts as many of the jobs, from the first on, as there is room for: reserves the room, inserts
 * the jobs and counts them.
 */
export async function admit(
  collections: Collections,
  { accounts, countedPushes }: Pick<Ledger, 'accounts' | 'countedPushes'>,
  admission: Admission,
): Promise<PushReceipt> {
  const { crawlerId, accountId, id, jobs, limits, now, repeatable } = admission;
  const startedAt = performance.now();
  const reservation = await reserve(collections, accounts, admission);
  if (reservation === undefined) return crawlerNotFound(jobs);
  const { taken, refused, gen, giveBack } = reservation;
  const outcomes = jobs.map(
    (job, index): PushOutcome => (index < taken.n ? { rid: job.rid } : { refused }),
  );
  const stallMs = repeatable === undefined ? MAX_STALL_MS : MAX_REPEATABLE_STALL_MS;
  if (taken.n > 0 && performance.now() - startedAt > stallMs) throw stalled();
  const documents = jobs.slice(0, taken.n).map((job) => toJobDocument(job, id, gen));
  const existing = await insertJobs(collections, documents, repeatable !== undefined);
  const withdrawn = (await repeatable?.keepOutcomes(outcomes, existing)) ?? [];
  const twice = amountOf(documents, new Set([...existing, ...withdrawn]));
  const counted = minus(taken, twice);
  const confirmed = await confirm(collections, crawlerId, { id, gen }, counted, now);
  if (confirmed !== null) countedPushes.set(id, true);
  await giveBack(twice);
  if (confirmed === null && !(await exists(collections, crawlerId))) {
    const rids = documents.map((each) => each._id);
    await Promise.all([
      collections.jobs.deleteMany({ _id: { $in: rids }, push: id }),
      giveBack(counted),
    ]);
    return crawlerNotFound(jobs);
  }
  if (confirmed === null || twice.n > 0) {
    // Another process has resolved this push, and counted what it found then. Or an earlier call of
    // the request inserted its jobs after it had been resolved, and nobody has counted those.
    await recount(collections, crawlerId, now, { all: true });
    if (taken.n > 0) await wakeNow(collections, crawlerId, now, 'job');
  }
  const isOver = reservation.queued > limits.accountQueue;
  return {
    outcomes,
    crossedAccountLimit: isOver && (await wentOver(collections, accountId, limits.accountQueue)),
    leased: isLive(confirmed?.leaseUntil, now),
  };
}

/** Reserves room in the account and the crawler; undefined when the crawler is gone or has changed. */
async function reserve(
  collections: Collections,
  accounts: AccountIncrements,
  { crawlerId, accountId, id, jobs, settings, limits, now, repeatable }: Admission,
): Promise<Reservation | undefined> {
  const rids = jobs.map((job) => job.rid).sort();
  const entry = {
    id,
    at: now,
    first: rids[0] ?? '',
    last: rids.at(-1) ?? '',
    ...(repeatable === undefined ? {} : { request: repeatable.request }),
  };
  const all = amount(jobs);
  const queued = accounts.tryReserve(accountId, all, limits.accountQueue);
  const giveBack = async (more: Amount): Promise<void> => {
    if (queued === undefined) await giveBackRoom(collections, accountId, more);
    else accounts.add(accountId, { queued: -more.n, queuedBytes: -more.bytes });
  };
  const [inAccount, inCrawler] = await Promise.allSettled([
    queued === undefined
      ? reserveInAccount(collections, accountId, all, limits.accountQueue, accounts.take(accountId))
      : { granted: all.n, queued },
    reserveInCrawler(collections, crawlerId, {
      entry,
      settings,
      n: all.n,
      limit: limits.crawlerQueue,
    }),
  ]);
  if (inAccount.status === 'rejected') throw inAccount.reason;
  const n = inAccount.value?.granted ?? 0;
  // The account counts the bytes only if it has room for all jobs.
  const granted = { n, bytes: n === all.n ? all.bytes : 0 };
  if (inCrawler.status === 'rejected') {
    await giveBack(granted).catch(() => undefined);
    throw inCrawler.reason;
  }
  const crawler = inCrawler.value;
  const accepted = Math.min(n, crawler?.granted ?? 0);
  const taken = accepted === all.n ? all : amount(jobs.slice(0, accepted));
  await giveBack(minus(granted, taken));
  if (crawler === null) return undefined;
  return {
    taken,
    refused: accepted === n ? 'account_queue_full' : 'crawler_queue_full',
    gen: crawler.purges,
    queued: (inAccount.value?.queued ?? 0) - (n - accepted),
    giveBack,
  };
}

/**
 * Inserts the jobs of a push. Returns the `rid`s of those that exist already, if the push may be
 * repeated: an earlier call of the request has inserted them late, under its id. The new `rid`s of
 * any other push can only exist because the driver has sent the insert twice, when the first was not
 * answered.
 */
async function insertJobs(
  collections: Collections,
  documents: readonly JobDocument[],
  repeatable: boolean,
): Promise<readonly string[]> {
  if (documents.length === 0) return [];
  try {
    await collections.jobs.insertMany(documents, { ordered: false });
    return [];
  } catch (error) {
    const existing = duplicateIndexes(error).flatMap((index) => documents[index]?._id ?? []);
    return repeatable ? existing : [];
  }
}

function amountOf(documents: readonly JobDocument[], rids: ReadonlySet<string>): Amount {
  const sizes = documents.flatMap(({ _id, size = 0 }) => (rids.has(_id) ? size : []));
  return { n: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

async function giveBackRoom(
  collections: Collections,
  accountId: string,
  { n, bytes }: Amount,
): Promise<void> {
  if (n === 0 && bytes === 0) return;
  await collections.accounts.updateOne(
    { _id: accountId },
    { $inc: { queued: -n, queuedBytes: -bytes } },
  );
}

async function exists(collections: Collections, crawlerId: string): Promise<boolean> {
  const id = { projection: { _id: 1 } } as const;
  return (await collections.crawlers.findOne({ _id: crawlerId }, id)) !== null;
}

function amount(jobs: readonly Job[]): Amount {
  return { n: jobs.length, bytes: jobs.reduce((sum, job) => sum + chargedJobBytes(job), 0) };
}

function minus(a: Amount, b: Amount): Amount {
  return { n: a.n - b.n, bytes: a.bytes - b.bytes };
}

function crawlerNotFound(jobs: readonly Job[]): PushReceipt {
  const outcomes = jobs.map(() => ({ refused: 'crawler_not_found' }) as const);
  return { outcomes, crossedAccountLimit: false, leased: false };
}

/** The error of a push that took too long to go on. */
export function stalled(): DomainError {
  return databaseUnavailable('The push took too long and was given up; try again.');
}
