import type { ClientSession, Collection, Db } from 'mongodb';
import { DEFAULT_PRIORITY } from '../../domain/priority.ts';
import { type DayCounts, toDay } from '../../domain/stats.ts';
import { type EndedJob, tallyEnd } from '../../domain/tally.ts';
import { hostOf } from '../../domain/target-url.ts';
import { createCountChanges } from '../count-changes.ts';
import { countsUpdate, dayIncrements } from './counts-document.ts';
import type { Transactions } from './transactions.ts';

// Version 5: counters are in parts of their own, and nothing is half done any more. Before, the
// counters of a crawler were in its document, and an ended job was kept until it was counted. A
// push had an entry in the crawler until it was counted, and records were written before their jobs
// ended.

interface OldCrawler {
  readonly _id: string;
  readonly accountId: string;
  readonly purges: number;
  readonly live: number;
  readonly completed: number;
  readonly failed: number;
  readonly deleted: number;
  readonly purged: number;
  readonly days: Readonly<Record<string, DayCounts>>;
  readonly moving?: Readonly<Record<string, { readonly id: string; readonly counts: DayCounts }>>;
  readonly applied: Readonly<Record<string, number>>;
  readonly fenced?: readonly string[];
}

interface OldJob extends Partial<EndedJob> {
  readonly _id: string;
  readonly crawlerId: string;
  readonly url?: string;
  readonly state: 'waiting' | 'retrying' | 'running' | 'ended';
  readonly from?: string;
  readonly gen: number;
  readonly size?: number;
  readonly endedAt?: Date;
  readonly by?: string;
  readonly seq?: number;
}

const BATCH = 5_000;
const CRAWLERS_AT_ONCE = 100;
const DROPPED = `live liveBytes running runningBytes retrying completed failed deleted purged
  deliveriesPending days firstDay moving applied pending fenced moves recounts miscounted granted grantedBytes`.split(
  /\s+/,
);

/** Brings a database of version 4 to version 5. A crawler is converted once, by any process. */
export async function settle(db: Db, transactions: Transactions): Promise<void> {
  const crawlers = db.collection<OldCrawler>('crawlers');
  await settleRequests(db);
  await addHosts(db);
  for (;;) {
    const found = await crawlers
      .find({ live: { $exists: true } }, { projection: { _id: 1 } })
      .limit(CRAWLERS_AT_ONCE)
      .toArray();
    if (found.length === 0) break;
    for (const { _id } of found) {
      await settleRecords(db, _id);
      await transactions.run((session) => settleCrawler(db, _id, session));
    }
  }
  await db.collection('result_orders').updateMany({}, { $unset: { batch: '' } });
  await db.collection('removals').deleteMany({ rids: { $exists: true } });
}

/** Gives each job its host and a priority. */
async function addHosts(db: Db): Promise<void> {
  const jobs: Collection<OldJob> = db.collection('jobs');
  let last = '';
  for (;;) {
    const found = await jobs
      .find({ _id: { $gt: last } }, { projection: { url: 1 } })
      .sort({ _id: 1 })
      .limit(BATCH)
      .toArray();
    const writes = found.map(({ _id, url = '' }) => {
      const $set = { host: hostOf(url), priority: DEFAULT_PRIORITY };
      return { updateOne: { filter: { _id, host: { $exists: false } }, update: { $set } } };
    });
    if (writes.length > 0) await jobs.bulkWrite(writes, { ordered: false });
    if (found.length < BATCH) return;
    last = found.at(-1)?._id ?? '';
  }
}

/** Removes what crawls have brought whose ends were not written, and hands over the other deliveries. */
async function settleRecords(db: Db, crawlerId: string): Promise<void> {
  const jobs: Collection<OldJob> = db.collection('jobs');
  let last = '';
  for (;;) {
    const alive = await jobs
      .find({ crawlerId, _id: { $gt: last } }, { projection: { state: 1 } })
      .sort({ _id: 1 })
      .limit(BATCH)
      .toArray();
    const rids = alive.filter(({ state }) => state !== 'ended').map(({ _id }) => _id);
    for (const name of ['results', 'deliveries']) {
      const records = db.collection<{ readonly _id: string }>(name);
      if (rids.length > 0) await records.deleteMany({ _id: { $in: rids } });
    }
    if (alive.length < BATCH) break;
    last = alive.at(-1)?._id ?? '';
  }
  await db
    .collection('deliveries')
    .updateMany({ crawlerId, state: 'staged' }, { $set: { state: 'due' } });
}

/** Makes the counters of a crawler from what is there. */
async function settleCrawler(db: Db, crawlerId: string, session: ClientSession): Promise<void> {
  const crawlers = db.collection<OldCrawler>('crawlers');
  const jobs: Collection<OldJob> = db.collection('jobs');
  const crawler = await crawlers.findOne({ _id: crawlerId, live: { $exists: true } }, { session });
  if (crawler === null) return;
  const { purges, accountId } = crawler;
  await finishDays(db, crawler, session);
  const ended = await jobs.find({ crawlerId, state: 'ended' }, { session }).toArray();
  const uncounted = ended.filter((each) => !isCounted(crawler, each));
  const changes = createCountChanges();
  // A purge has counted those that were in the queue; of one with a result the result counts.
  const isPurged = ({ from, gen }: OldJob): boolean => from !== 'running' && gen < purges;
  for (const each of uncounted) {
    const { end } = each;
    if (isPurged(each)) {
      if (end === 'deleted' || end === 'purged') continue;
      changes.add('purged', -1);
      changes.addDay('purged', -1);
    }
    changes.addTally(tallyEnd(each as EndedJob));
  }
  if (ended.length > 0) await jobs.deleteMany({ crawlerId, state: 'ended' }, { session });
  const sums = await jobs
    .aggregate<{ readonly _id: OldJob['state']; readonly n: number; readonly bytes: number }>(
      [
        { $match: { crawlerId, $or: [{ state: 'running' }, { gen: { $gte: purges } }] } },
        { $group: { _id: '$state', n: { $sum: 1 }, bytes: { $sum: '$size' } } },
      ],
      { session },
    )
    .toArray();
  const of = (state: OldJob['state']) => sums.find(({ _id }) => _id === state);
  const pending = await db
    .collection('deliveries')
    .countDocuments({ crawlerId, state: { $in: ['due', 'sending'] } }, { session });
  const live = sums.reduce((sum, { n }) => sum + n, 0);
  // Jobs of pushes that were not counted, or that are gone without an end: a purge has taken those.
  const off = live + uncounted.filter((each) => !isPurged(each)).length - crawler.live;
  if (off > 0) changes.addDay('pushed', off);
  const days = Object.keys(crawler.days).toSorted();
  const counts = db.collection<{ readonly _id: string }>('counts');
  await counts.deleteMany({ _id: crawlerId }, { session });
  await counts.insertOne(
    {
      _id: crawlerId,
      crawlerId,
      accountId,
      gen: purges,
      waiting: of('waiting')?.n ?? 0,
      retrying: of('retrying')?.n ?? 0,
      running: of('running')?.n ?? 0,
      queuedBytes: (of('waiting')?.bytes ?? 0) + (of('retrying')?.bytes ?? 0),
      runningBytes: of('running')?.bytes ?? 0,
      completed: crawler.completed,
      failed: crawler.failed,
      deleted: crawler.deleted,
      purged: crawler.purged + (purges > 0 ? Math.max(0, -off) : 0),
      deliveriesPending: pending,
      days: crawler.days,
      firstDay: days[0] ?? toDay(new Date()),
    } as never,
    { session },
  );
  const update = countsUpdate(changes, new Date());
  if (Object.keys(update).length > 0) {
    await counts.updateOne({ _id: crawlerId }, update, { session });
  }
  const $unset = Object.fromEntries(DROPPED.map((name) => [name, '' as const]));
  await crawlers.updateOne({ _id: crawlerId }, { $unset }, { session });
}

function isCounted({ applied, fenced = [] }: OldCrawler, { by = '', seq = 0 }: OldJob): boolean {
  return seq <= (applied[by] ?? 0) && !fenced.includes(`${by}.${seq}`);
}

/** Adds to the history the days that were on their way there. */
async function finishDays(
  db: Db,
  { _id: crawlerId, moving = {} }: OldCrawler,
  session: ClientSession,
): Promise<void> {
  const history = db.collection<{ readonly _id: string; readonly moved?: readonly string[] }>(
    'history',
  );
  for (const [day, { id, counts }] of Object.entries(moving)) {
    const _id = `${crawlerId}/${day}`;
    if ((await history.findOne({ _id, moved: id }, { session })) !== null) continue;
    await history.updateOne(
      { _id },
      { $inc: dayIncrements('counts', counts), $setOnInsert: { crawlerId, day } },
      { upsert: true, session },
    );
  }
}

/** Pushes with a `request_id` that did not come to their end: what they have queued is their outcome. */
async function settleRequests(db: Db): Promise<void> {
  const requests = db.collection<{
    readonly _id: string;
    readonly rids: readonly string[];
    readonly taken?: readonly string[];
  }>('push_requests');
  for await (const { _id, rids, taken = [] } of requests.find({ outcomes: null } as never)) {
    const there = await db
      .collection<OldJob>('jobs')
      .find({ _id: { $in: [...rids] } }, { projection: { _id: 1 } })
      .toArray();
    const queued = new Set([...taken, ...there.map((each) => each._id)]);
    if (queued.size === 0) await requests.deleteOne({ _id });
    else {
      const outcomes = rids.map((rid) =>
        queued.has(rid) ? { rid } : { refused: 'crawler_queue_full' },
      );
      await requests.updateOne({ _id }, { $set: { outcomes } });
    }
  }
}
