import type { AnyBulkWriteOperation } from 'mongodb';
import { recordBytesOf } from '../../domain/quotas.ts';
import { type FinishReceipt, finishReceipt, isHeld, type Verdict } from '../finish-receipt.ts';
import type { JobOutcome, Lease } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument, Tombstone } from './collections.ts';
import { FIELDS_DROPPED_AT_END, untriedUpdate } from './job-document.ts';
import type { Ledger } from './ledger.ts';
import { deliveryDocument, insertRecords, resultDocument } from './records.ts';

type End = Extract<JobOutcome, { kind: 'stored' | 'delivery' }>;

const isEnd = (outcome: JobOutcome): outcome is End =>
  outcome.kind === 'stored' || outcome.kind === 'delivery';

/** Makes `QueueStore.finish`. */
export function createFinish(collections: Collections, ledger: Ledger) {
  return async function finish(
    outcomes: readonly JobOutcome[],
    now: Date,
    lease?: Lease,
  ): Promise<FinishReceipt> {
    const crawlerIds = [...new Set(outcomes.map((each) => each.crawlerId))];
    const verdicts = new Map<JobOutcome, Verdict>();
    await Promise.all(
      crawlerIds.map((crawlerId) =>
        ledger.runExclusive(crawlerId, async () => {
          const own = outcomes.filter((each) => each.crawlerId === crawlerId);
          const won = await finishOwn(collections, ledger, crawlerId, own, now, lease);
          for (const each of own) verdicts.set(each, won.has(each) ? 'won' : 'lost');
        }),
      ),
    );
    const inOrder = outcomes.map((each) => verdicts.get(each) ?? 'lost');
    return finishReceipt(outcomes, inOrder, now, lease);
  };
}

/** Ends jobs of one crawler; those that were won. */
async function finishOwn(
  collections: Collections,
  ledger: Ledger,
  crawlerId: string,
  outcomes: readonly JobOutcome[],
  now: Date,
  lease: Lease | undefined,
): Promise<Set<JobOutcome>> {
  const seq = ledger.nextSeq();
  const by = ledger.processId;
  const rids = outcomes.map((each) => each.rid);
  const [crawler, jobs] = await Promise.all([
    collections.crawlers.findOne(
      { _id: crawlerId },
      { projection: { accountId: 1, purges: 1, recounts: 1 } },
    ),
    collections.jobs
      .find(
        { _id: { $in: rids }, crawlerId },
        { projection: { attempt: 1, retry: 1, gen: 1, size: 1 } },
      )
      .toArray(),
  ]);
  if (crawler === null) return new Set();
  const found = new Map(jobs.map((each) => [each._id, each]));
  // What has no chance leaves no trace. One mark for each outcome: a job can be in a batch twice, and one of the two is won.
  const marks = new Map(
    outcomes
      .filter((each) => found.get(each.rid)?.attempt === each.attempt)
      .map((each, index) => [each, `${by}.${seq}.${index}`]),
  );
  if (marks.size === 0) return new Set();
  await stage(collections, crawler, marks, now, lease);

  const { purges } = crawler;
  const moves = [...marks].map(([each, mark]) => updateFor(each, now, { by, seq, mark, purges }));
  const { matchedCount } = await collections.jobs.bulkWrite(moves, { ordered: false });
  const won =
    matchedCount === marks.size ? new Set(marks.keys()) : await findWon(collections, marks);

  const sizeAndGen = ({ rid }: JobOutcome) => {
    const { gen = 0, size = 0 } = found.get(rid) ?? {};
    return { gen, size };
  };
  const returned = [...won].flatMap((each) =>
    isEnd(each)
      ? []
      : {
          ...sizeAndGen(each),
          retrying: each.kind === 'retry' || (found.get(each.rid)?.retry ?? 0) > 0,
          again: each.kind === 'retry',
        },
  );
  const ended = [...won].filter(isEnd).map((each) => {
    const { gen, size } = sizeAndGen(each);
    const tombstone = toTombstone(each, now, { by, seq }, isHeld(each, lease));
    return { rid: each.rid, gen, tombstone: { ...tombstone, size } };
  });
  const there = await ledger.settle({ crawlerId, by, seq, ended, returned }, now, crawler);
  const lost = there ? [...marks].filter(([each]) => !won.has(each)) : [...marks];
  if (lost.length > 0) await ledger.tidy(crawlerId, () => discard(collections, lost));
  return there ? won : new Set();
}

/** Writes the records that the ends bring, before any job has ended. */
async function stage(
  collections: Collections,
  { _id: crawlerId, accountId }: Pick<CrawlerDocument, '_id' | 'accountId'>,
  marks: ReadonlyMap<JobOutcome, string>,
  now: Date,
  lease: Lease | undefined,
): Promise<void> {
  const results = [...marks].flatMap(([each, mark]) =>
    each.kind === 'stored'
      ? resultDocument(
          { accountId, tokenType: each.tokenType },
          each.record,
          { claim: each.attempt, mark },
          now,
          each.expiresAt,
        )
      : [],
  );
  const deliveries = [...marks].flatMap(([each, mark]) =>
    each.kind === 'delivery'
      ? deliveryDocument(
          crawlerId,
          each.record,
          JSON.stringify(each.callbackHeaders),
          { claim: each.attempt, mark },
          now,
          each.expiresAt,
          isHeld(each, lease) ? lease?.epoch : undefined,
        )
      : [],
  );
  await Promise.all([
    insertRecords(collections.results, results),
    insertRecords(collections.deliveries, deliveries),
  ]);
}

/** Removes the records of ends that came too late. */
async function discard(
  collections: Collections,
  lost: readonly [JobOutcome, string][],
): Promise<void> {
  await Promise.all(
    lost.map(async ([{ kind, rid }, mark]) => {
      if (kind === 'stored') await collections.results.deleteOne({ _id: rid, mark });
      if (kind === 'delivery') await collections.deliveries.deleteOne({ _id: rid, mark });
    }),
  );
}

function toTombstone(
  outcome: End,
  now: Date,
  batch: { readonly by: string; readonly seq: number },
  held: boolean,
): Tombstone {
  const { cbStatus } = outcome.record;
  return {
    ...batch,
    from: outcome.timedOut === true ? 'waiting' : 'running',
    end: cbStatus === 200 ? 'completed' : 'failed',
    cbStatus,
    billed: outcome.billed,
    kept: recordBytesOf(outcome.record),
    timedOut: outcome.timedOut === true,
    endedAt: now,
    ...(outcome.kind === 'delivery' ? { delivers: !held } : {}),
  };
}

function updateFor(
  outcome: JobOutcome,
  now: Date,
  batch: {
    readonly by: string;
    readonly seq: number;
    readonly mark: string;
    readonly purges: number;
  },
): AnyBulkWriteOperation<JobDocument> {
  const { rid, crawlerId, attempt } = outcome;
  const { by, seq, mark, purges } = batch;
  const filter = {
    _id: rid,
    crawlerId,
    attempt,
    ...(outcome.timedOut === true
      ? ({ expires: true, gen: purges } as const)
      : ({ state: 'running' } as const)),
  };
  if (isEnd(outcome)) {
    const tombstone = toTombstone(outcome, now, { by, seq }, false);
    // Whether it is held is known by the delivery itself: only a staged one is handed over.
    return {
      updateOne: {
        filter,
        update: { $set: { state: 'ended', mark, ...tombstone }, $unset: FIELDS_DROPPED_AT_END },
      },
    };
  }
  const due = outcome.dueAt ?? now;
  if (outcome.kind === 'retry') {
    return {
      updateOne: {
        filter,
        update: {
          $set: { state: 'retrying', queued: true, due, mark },
          $inc: { retry: 1, ...(outcome.crashed === true ? { crashes: 1 } : {}) },
          $unset: { epoch: 1 },
        },
      },
    };
  }
  return { updateOne: { filter, update: untriedUpdate(mark, due) } };
}

async function findWon(
  collections: Collections,
  marks: ReadonlyMap<JobOutcome, string>,
): Promise<Set<JobOutcome>> {
  const rids = [...marks.keys()].map((each) => each.rid);
  const moved = await collections.jobs
    .find({ _id: { $in: rids }, mark: { $in: [...marks.values()] } }, { projection: { mark: 1 } })
    .toArray();
  const won = new Set(moved.map((each) => each.mark));
  return new Set([...marks].flatMap(([each, mark]) => (won.has(mark) ? each : [])));
}
