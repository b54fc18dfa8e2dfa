import type { Filter } from 'mongodb';
import { toDay } from '../../domain/stats.ts';
import type { Collections, CrawlerDocument, DeliveryDocument, JobDocument } from './collections.ts';
import {
  appliedPath,
  type BatchId,
  batchLabel,
  findTombstones,
  isUnapplied,
  toBatchId,
  toMarkedBatch,
} from './tombstones.ts';
import { isUncountedStart, removeVoidStarts } from './void-starts.ts';

const TRIES = 5;
const RECOUNT_EVERY_MS = 10_000;
const MAX_REMEMBERED = 1_000;

/** What a recount counts. */
export interface RecountOptions {
  /** The rest of the queue too. */
  readonly all?: boolean;
  /** Starts up to this batch of its process count as applied from now on. */
  readonly settledUpTo?: BatchId | undefined;
}

/**
 * Recomputes `running`, `retrying` and `deliveriesPending` of a crawler from the jobs and
 * deliveries themselves, as after a crash between a write and its counts. With `all` the rest of
 * the queue too: jobs that nobody has counted then count as pushed at `now`, and in a crawler that
 * was purged jobs that are gone without an end count as purged: a purge beside what made them due
 * again has taken them with it, uncounted. Unapplied tombstones count under their former state, and
 * so do starts: the write that applies them counts them. Nothing is written unless the counters
 * stood still meanwhile; a crawler that does not stand still is left to the next holder of its
 * lease.
 */
export async function recount(
  collections: Collections,
  crawlerId: string,
  now: Date,
  { all = false, settledUpTo }: RecountOptions = {},
): Promise<void> {
  for (let n = 0; n < TRIES; n++) {
    const read = await readCrawler(collections, crawlerId);
    if (read === null) return;
    const found = await countFound(collections, read, now, { all, settledUpTo });
    const countedAt = all ? now : undefined;
    if (
      found !== undefined &&
      (await write(collections, read, found, { countedAt, settledUpTo }))
    ) {
      return;
    }
  }
  await collections.crawlers.updateOne({ _id: crawlerId }, { $set: { miscounted: true } });
}

/** Says of each crawler whether it has not done so for a while: recounts are dear, and may fail. */
export function createRareness(): (crawlerId: string) => boolean {
  const saidAt = new Map<string, number>();
  return (crawlerId) => {
    const since = performance.now() - (saidAt.get(crawlerId) ?? Number.NEGATIVE_INFINITY);
    if (since < RECOUNT_EVERY_MS) return false;
    if (saidAt.size >= MAX_REMEMBERED) saidAt.clear();
    saidAt.set(crawlerId, performance.now());
    return true;
  };
}

const READ_FIELDS = {
  accountId: 1,
  applied: 1,
  fenced: 1,
  moves: 1,
  wakes: 1,
  purges: 1,
  pending: 1,
  live: 1,
} as const;

type ReadCrawler = Pick<CrawlerDocument, '_id' | keyof typeof READ_FIELDS>;

function readCrawler(collections: Collections, crawlerId: string): Promise<ReadCrawler | null> {
  return collections.crawlers.findOne({ _id: crawlerId }, { projection: READ_FIELDS });
}

interface Found {
  readonly running: number;
  readonly runningBytes: number;
  readonly retrying: number;
  readonly deliveriesPending: number;
  /** All that is waiting, running or retrying; only when everything is counted. */
  readonly live: number;
  readonly liveBytes: number;
}

/** Counts what there is; undefined when something changed meanwhile. */
async function countFound(
  collections: Collections,
  crawler: ReadCrawler,
  now: Date,
  { all = false, settledUpTo }: RecountOptions,
): Promise<Found | undefined> {
  const { _id: crawlerId, purges } = crawler;
  const ended = await findTombstones(collections, crawlerId);
  const sending = await findSending(collections, crawlerId);
  const current = { crawlerId, gen: purges, queued: true } as const;
  const pushes = crawler.pending.map((each) => each.id);
  const [begun, retrying, queued, due] = await Promise.all([
    collections.jobs
      .find({ crawlerId, state: 'running' }, { projection: { size: 1, mark: 1, retry: 1, gen: 1 } })
      .toArray(),
    collections.jobs.countDocuments({ ...current, state: 'retrying' }),
    all ? countAndSize(collections, { ...current, push: { $nin: pushes } }) : NOTHING,
    collections.deliveries.countDocuments({ crawlerId, state: 'due' }),
  ]);
  if ((await removeVoidStarts(collections, crawler, begun, now)) > 0) return undefined;
  const isSettled = (batch: BatchId | undefined): boolean =>
    batch !== undefined &&
    batch.processId === settledUpTo?.processId &&
    batch.batchNo <= settledUpTo.batchNo;
  const starting = begun.filter(
    (each) => isUncountedStart(crawler, each) && !isSettled(toMarkedBatch(each.mark)),
  );
  const running = begun.filter((each) => !starting.includes(each));
  const isCounted = (each: JobDocument): boolean => !isUnapplied(crawler, toBatchId(each));
  const unapplied = ended.filter((each) => !isCounted(each));
  const delivering = ended.filter((each) => each.delivers === true && isCounted(each));
  const [uncommitted, early, staged] = await Promise.all([
    countUncommitted(collections, sending, unapplied),
    countAmong(collections, unapplied, 'due'),
    countAmong(collections, delivering, 'staged'),
  ]);
  const endedAfter = await findTombstones(collections, crawlerId);
  const sendingAfter = await findSending(collections, crawlerId);
  const stoodStill =
    isSame(ended.map(tombstoneKey), endedAfter.map(tombstoneKey)) &&
    isSame(sending.map(sendingKey), sendingAfter.map(sendingKey));
  if (!stoodStill) return undefined;
  // A purge of the queue has subtracted the jobs that were in it, so their tombstones do not count.
  const former = unapplied.filter((each) => each.from === 'running' || each.gen >= purges);
  const formerlyRunning = former.filter((each) => each.from === 'running');
  const runningBytes = totalBytes(running);
  return {
    running: running.length + formerlyRunning.length,
    runningBytes: runningBytes + totalBytes(formerlyRunning),
    retrying:
      retrying +
      former.filter((each) => each.from === 'retrying').length +
      starting.filter((each) => each.retry > 0).length,
    deliveriesPending: due - early + sending.length - uncommitted + staged,
    live: queued.n + begun.length + former.length,
    liveBytes: queued.bytes + totalBytes(begun) + totalBytes(former),
  };
}

/**
 * Writes what was found, unless the crawler has changed since it was read; then false. `countedAt`
 * is given when everything was counted.
 */
async function write(
  collections: Collections,
  read: ReadCrawler,
  found: Found,
  {
    countedAt,
    settledUpTo,
  }: { readonly countedAt: Date | undefined; readonly settledUpTo: BatchId | undefined },
): Promise<boolean> {
  const { live, liveBytes, ...others } = found;
  const all = countedAt !== undefined;
  const pushes = read.pending.map((each) => each.id);
  const noOtherPush = { $not: { $elemMatch: { id: { $nin: pushes } } } };
  const unchanged = {
    _id: read._id,
    moves: read.moves,
    purges: read.purges,
    ...(all ? { wakes: read.wakes, pending: noOtherPush } : {}),
  };
  const uncounted = all ? live - read.live : 0;
  const gone = read.purges > 0 ? Math.max(0, -uncounted) : 0;
  const day = countedAt === undefined ? '' : toDay(countedAt);
  const before = await collections.crawlers.findOneAndUpdate(
    unchanged,
    {
      $set: { ...others, ...(all ? { live, liveBytes } : {}) },
      $inc: {
        moves: 1,
        recounts: 1,
        ...(uncounted > 0 ? { [`days.${day}.pushed`]: uncounted } : {}),
        ...(gone > 0 ? { purged: gone, [`days.${day}.purged`]: gone } : {}),
      },
      ...(uncounted > 0 || gone > 0 ? { $min: { firstDay: day } } : {}),
      ...(settledUpTo === undefined
        ? {}
        : { $max: { [appliedPath(settledUpTo)]: settledUpTo.batchNo } }),
      ...(all ? { $unset: { miscounted: '' } } : {}),
    },
    { returnDocument: 'before', projection: { live: 1, liveBytes: 1, running: 1 } },
  );
  if (before === null) return false;
  const more = {
    queued: (all ? live : before.live) - found.running - (before.live - before.running),
    queuedBytes: all ? liveBytes - (before.liveBytes ?? 0) : 0,
  };
  if (more.queued !== 0 || more.queuedBytes !== 0) {
    await collections.accounts.updateOne({ _id: read.accountId }, { $inc: more });
  }
  return true;
}

const NOTHING = { n: 0, bytes: 0 };

function totalBytes(jobs: readonly Pick<JobDocument, 'size'>[]): number {
  return jobs.reduce((sum, { size = 0 }) => sum + size, 0);
}

async function countAndSize(
  collections: Collections,
  filter: Filter<JobDocument>,
): Promise<typeof NOTHING> {
  const [sum] = await collections.jobs
    .aggregate<typeof NOTHING>([
      { $match: filter },
      { $group: { _id: null, n: { $sum: 1 }, bytes: { $sum: '$size' } } },
    ])
    .toArray();
  return sum ?? NOTHING;
}

type Sending = Pick<DeliveryDocument, '_id' | 'epoch'>;

/** The deliveries that are being sent. An index has these fields, so no page is read. */
function findSending(collections: Collections, crawlerId: string): Promise<Sending[]> {
  return collections.deliveries
    .find({ crawlerId, state: 'sending' }, { projection: { epoch: 1 } })
    .sort({ epoch: 1, _id: 1 })
    .toArray();
}

/** How many of the deliveries were written before the end of their job, which is not counted. */
async function countUncommitted(
  collections: Collections,
  sending: readonly Sending[],
  unapplied: readonly JobDocument[],
): Promise<number> {
  if (sending.length === 0) return 0;
  const rids = sending.map((each) => each._id);
  const alive = await collections.jobs
    .find({ _id: { $in: rids }, state: { $ne: 'ended' } }, { projection: { _id: 1 } })
    .toArray();
  const early = new Set([...alive, ...unapplied].map((each) => each._id));
  return rids.filter((rid) => early.has(rid)).length;
}

function countAmong(
  collections: Collections,
  ended: readonly JobDocument[],
  state: DeliveryDocument['state'],
): Promise<number> | number {
  if (ended.length === 0) return 0;
  return collections.deliveries.countDocuments({
    _id: { $in: ended.map((each) => each._id) },
    state,
  });
}

function isSame(before: readonly string[], after: readonly string[]): boolean {
  return before.join() === after.join();
}

function tombstoneKey(document: JobDocument): string {
  return `${document._id} ${batchLabel(toBatchId(document))}`;
}

function sendingKey({ _id, epoch }: Sending): string {
  return `${_id} ${epoch}`;
}
