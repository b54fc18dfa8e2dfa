import type { Filter } from 'mongodb';
import type { Collections, DeliveryDocument, JobDocument } from './collections.ts';
import { batchLabel, findTombstones, isUnapplied, toBatchId } from './tombstones.ts';

const TRIES = 5;

/**
 * Counts what is being crawled, what waits for a retry and what is to be delivered, as after a crash between a write and its
 * counts. With `all` the rest of the queue too. Ends that are yet to be applied count as what they were. Nothing is written
 * unless the crawler's counters stood still meanwhile; a crawler that does not stand still is left to the next holder of its lease.
 */
export async function recount(
  collections: Collections,
  crawlerId: string,
  all = false,
): Promise<void> {
  for (let n = 0; n < TRIES; n++) {
    if (await recountOnce(collections, crawlerId, all)) return;
  }
  await collections.crawlers.updateOne({ _id: crawlerId }, { $set: { miscounted: true } });
}

const fields = {
  accountId: 1,
  applied: 1,
  fenced: 1,
  moves: 1,
  wakes: 1,
  purges: 1,
  pending: 1,
} as const;

/** False when something moved meanwhile. */
async function recountOnce(
  collections: Collections,
  crawlerId: string,
  all: boolean,
): Promise<boolean> {
  const crawler = await collections.crawlers.findOne({ _id: crawlerId }, { projection: fields });
  if (crawler === null) return true;
  const { moves, wakes, purges } = crawler;
  const pushes = crawler.pending.map((each) => each.id);
  const ended = await findTombstones(collections, crawlerId);
  const alive = { crawlerId, gen: purges };
  const queuedOnes = { ...alive, queued: true, push: { $nin: pushes } } as const;
  const [running, retrying, queued, due, sending] = await Promise.all([
    collections.jobs.find({ crawlerId, state: 'running' }, { projection: { size: 1 } }).toArray(),
    collections.jobs.countDocuments({ ...alive, queued: true, state: 'retrying' }),
    all ? countAndSize(collections, queuedOnes) : NOTHING,
    collections.deliveries.countDocuments({ crawlerId, state: 'due' }),
    collections.deliveries.countDocuments({ crawlerId, state: 'sending' }),
  ]);
  const unapplied = ended.filter((each) => isUnapplied(crawler, toBatchId(each)));
  // What was purged in the queue has been taken from the counters with it.
  const counted = unapplied.filter((each) => each.from === 'running' || each.gen >= purges);
  const were = (state: string): number => counted.filter((each) => each.from === state).length;
  const early = [...running, ...unapplied].map((each) => each._id);
  const late = ended.filter(
    (each) => each.delivers === true && !isUnapplied(crawler, toBatchId(each)),
  );
  const among = (rids: readonly string[], ...states: DeliveryDocument['state'][]) =>
    rids.length === 0
      ? 0
      : collections.deliveries.countDocuments({ _id: { $in: [...rids] }, state: { $in: states } });
  const [uncommitted, staged] = await Promise.all([
    among(early, 'due', 'sending'),
    among(
      late.map((each) => each._id),
      'staged',
    ),
  ]);
  const after = await findTombstones(collections, crawlerId);
  if (after.map(tombstoneKey).join() !== ended.map(tombstoneKey).join()) return false;
  const runningBytes = totalBytes(running);
  const live = queued.n + running.length + counted.length;
  const liveBytes = queued.bytes + runningBytes + totalBytes(counted);
  const still = {
    _id: crawlerId,
    moves,
    purges,
    ...(all ? { wakes, pending: { $not: { $elemMatch: { id: { $nin: pushes } } } } } : {}),
  };
  const before = await collections.crawlers.findOneAndUpdate(
    still,
    {
      $set: {
        running: running.length + were('running'),
        retrying: retrying + were('retrying'),
        deliveriesPending: due + sending - uncommitted + staged,
        runningBytes: runningBytes + totalBytes(counted.filter((each) => each.from === 'running')),
        ...(all ? { live, liveBytes } : {}),
      },
      $inc: { moves: 1, recounts: 1 },
      ...(all ? { $unset: { miscounted: '' } } : {}),
    },
    { returnDocument: 'before', projection: { accountId: 1, live: 1, liveBytes: 1, running: 1 } },
  );
  if (before === null) return false;
  const held = (all ? live : before.live) - running.length - were('running');
  const more = {
    queued: held - (before.live - before.running),
    queuedBytes: all ? liveBytes - (before.liveBytes ?? 0) : 0,
  };
  if (more.queued !== 0 || more.queuedBytes !== 0) {
    await collections.accounts.updateOne({ _id: before.accountId }, { $inc: more });
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

function tombstoneKey(document: JobDocument): string {
  return `${document._id} ${batchLabel(toBatchId(document))}`;
}
