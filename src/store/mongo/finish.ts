import type { AnyBulkWriteOperation } from 'mongodb';
import { chargedRecordBytes } from '../../domain/quotas.ts';
import { resultEnd } from '../../domain/tally.ts';
import { finishReceipt, isHeld, type Verdict } from '../finish-receipt.ts';
import type { JobOutcome, Lease, QueueStore } from '../store.ts';
import type {
  Collections,
  DeliveryDocument,
  JobDocument,
  ResultDocument,
  Tombstone,
} from './collections.ts';
import type { Returned } from './counts.ts';
import { FIELDS_DROPPED_AT_END, untriedUpdate } from './job-document.ts';
import type { Ledger } from './ledger.ts';
import { deliveryDocument, insertRecords, resultDocument } from './records.ts';
import { type BatchId, batchFields, batchLabel } from './tombstones.ts';

type End = Extract<JobOutcome, { kind: 'stored' | 'delivery' }>;

const isEnd = (outcome: JobOutcome): outcome is End =>
  outcome.kind === 'stored' || outcome.kind === 'delivery';

/** The name of the write that brings each outcome. */
type WriteIds = ReadonlyMap<JobOutcome, string>;

/** What the ends of one crawler's jobs share. */
interface Finishing {
  readonly crawlerId: string;
  readonly batch: BatchId;
  readonly now: Date;
  readonly lease: Lease | undefined;
}

/** Creates `QueueStore.finish`. */
export function createFinish(collections: Collections, ledger: Ledger): QueueStore['finish'] {
  return async (outcomes, now, lease) => {
    const verdicts = new Map<JobOutcome, Verdict>();
    const byCrawler = Map.groupBy(outcomes, (each) => each.crawlerId);
    await Promise.all(
      [...byCrawler].map(([crawlerId, own]) =>
        ledger.runExclusive(crawlerId, async () => {
          const finishing = { crawlerId, batch: ledger.newBatch(), now, lease };
          const won = await finishOwn(collections, ledger, finishing, own);
          for (const each of own) verdicts.set(each, won.has(each) ? 'won' : 'lost');
        }),
      ),
    );
    const inOrder = outcomes.map((each) => verdicts.get(each) ?? 'lost');
    return finishReceipt(outcomes, inOrder, now, lease);
  };
}

/** Ends jobs of one crawler, and returns the outcomes that were won. */
async function finishOwn(
  collections: Collections,
  ledger: Ledger,
  finishing: Finishing,
  outcomes: readonly JobOutcome[],
): Promise<Set<JobOutcome>> {
  const { crawlerId, batch, now, lease } = finishing;
  const [crawler, jobs] = await Promise.all([
    collections.crawlers.findOne({ _id: crawlerId }, { projection: CRAWLER_FIELDS }),
    findJobs(collections, crawlerId, outcomes),
  ]);
  if (crawler === null) return new Set();
  // Outcomes whose attempt is outdated are skipped. Each outcome gets a write id of its own,
  // because a batch may hold two outcomes of one job, and only one of them may win.
  const writeIds: WriteIds = new Map(
    outcomes
      .filter((each) => jobs.get(each.rid)?.attempt === each.attempt)
      .map((each, index) => [each, `${batchLabel(batch)}.${index}`]),
  );
  if (writeIds.size === 0) return new Set();
  await stageRecords(collections, crawler.accountId, finishing, writeIds);
  const writes = [...writeIds].map(([each, writeId]) =>
    updateFor(each, finishing, writeId, crawler.purges),
  );
  const { matchedCount } = await collections.jobs.bulkWrite(writes, { ordered: false });
  const won =
    matchedCount === writeIds.size
      ? new Set(writeIds.keys())
      : await findWon(collections, writeIds);

  const ended = [...won].filter(isEnd).map((each) => {
    const { gen, size } = genAndSize(jobs.get(each.rid));
    const tombstone = toTombstone(each, now, batch, isHeld(each, lease));
    return { rid: each.rid, gen, tombstone: { ...tombstone, size } };
  });
  const returned = [...won].flatMap((each) =>
    isEnd(each) ? [] : toReturned(each, jobs.get(each.rid)),
  );
  const exists = await ledger.settle({ crawlerId, ...batch, ended, returned }, now, crawler);
  // Outcomes that were lost leave no records.
  const lost = exists ? [...writeIds].filter(([each]) => !won.has(each)) : [...writeIds];
  if (lost.length > 0) await ledger.tidy(crawlerId, () => discard(collections, lost));
  return exists ? won : new Set();
}

const CRAWLER_FIELDS = { accountId: 1, purges: 1, recounts: 1 } as const;

type FoundJob = Pick<JobDocument, 'attempt' | 'retry' | 'gen' | 'size'>;

async function findJobs(
  collections: Collections,
  crawlerId: string,
  outcomes: readonly JobOutcome[],
): Promise<Map<string, FoundJob>> {
  const rids = outcomes.map((each) => each.rid);
  const found = await collections.jobs
    .find(
      { _id: { $in: rids }, crawlerId },
      { projection: { attempt: 1, retry: 1, gen: 1, size: 1 } },
    )
    .toArray();
  return new Map(found.map((each) => [each._id, each]));
}

function genAndSize({ gen = 0, size = 0 }: Partial<FoundJob> = {}) {
  return { gen, size };
}

function toReturned({ kind }: JobOutcome, job: FoundJob | undefined): Returned {
  const again = kind === 'retry';
  return { ...genAndSize(job), retrying: again || (job?.retry ?? 0) > 0, again };
}

/** Writes the records that the ends bring, before any job has ended. */
async function stageRecords(
  collections: Collections,
  accountId: string,
  { crawlerId, now, lease }: Finishing,
  writeIds: WriteIds,
): Promise<void> {
  const results: ResultDocument[] = [];
  const deliveries: DeliveryDocument[] = [];
  for (const [outcome, writeId] of writeIds) {
    if (!isEnd(outcome)) continue;
    const { record, expiresAt } = outcome;
    const origin = { claim: outcome.attempt, mark: writeId };
    if (outcome.kind === 'stored') {
      const selection = { accountId, tokenType: outcome.tokenType, crawlerId };
      results.push(resultDocument({ selection, record, origin, now, expiresAt }));
    } else {
      const callbackHeaders = JSON.stringify(outcome.callbackHeaders);
      const epoch = isHeld(outcome, lease) ? lease?.epoch : undefined;
      deliveries.push(
        deliveryDocument({
          crawlerId,
          record,
          callbackHeaders,
          origin,
          now,
          expiresAt,
          epoch,
          traceparent: outcome.traceparent,
        }),
      );
    }
  }
  await Promise.all([
    insertRecords(collections.results, results),
    insertRecords(collections.deliveries, deliveries),
  ]);
}

/** Removes the records of outcomes that were lost. */
async function discard(
  collections: Collections,
  lost: readonly [JobOutcome, string][],
): Promise<void> {
  await Promise.all(
    lost.map(async ([{ kind, rid }, writeId]) => {
      const written = { _id: rid, mark: writeId };
      if (kind === 'stored') await collections.results.deleteOne(written);
      if (kind === 'delivery') await collections.deliveries.deleteOne(written);
    }),
  );
}

function toTombstone(outcome: End, now: Date, batch: BatchId, held: boolean): Tombstone {
  const { cbStatus } = outcome.record;
  return {
    ...batchFields(batch),
    from: outcome.timedOut === true ? 'waiting' : 'running',
    end: resultEnd(cbStatus),
    cbStatus,
    billed: outcome.billed,
    kept: chargedRecordBytes(outcome.record),
    timedOut: outcome.timedOut === true,
    endedAt: now,
    ...(outcome.kind === 'delivery' ? { delivers: !held } : {}),
  };
}

/** The write that ends or returns a job, if it still is in the state and attempt that are named. */
function updateFor(
  outcome: JobOutcome,
  { crawlerId, batch, now }: Finishing,
  writeId: string,
  purges: number,
): AnyBulkWriteOperation<JobDocument> {
  const filter = {
    _id: outcome.rid,
    crawlerId,
    attempt: outcome.attempt,
    ...(outcome.timedOut === true
      ? ({ expires: true, gen: purges } as const)
      : ({ state: 'running' } as const)),
  };
  if (isEnd(outcome)) {
    // `delivers` need not be exact here: only a staged delivery is handed over.
    const tombstone = toTombstone(outcome, now, batch, false);
    const ended = { state: 'ended', mark: writeId, ...tombstone } as const;
    return { updateOne: { filter, update: { $set: ended, $unset: FIELDS_DROPPED_AT_END } } };
  }
  const due = outcome.dueAt ?? now;
  if (outcome.kind === 'release') {
    return { updateOne: { filter, update: untriedUpdate(writeId, due) } };
  }
  const update = {
    $set: {
      state: 'retrying',
      queued: true,
      due,
      mark: writeId,
      ...(outcome.failure === undefined ? {} : { lastFailure: outcome.failure }),
    },
    $inc: { retry: 1, ...(outcome.crashed === true ? { crashes: 1 } : {}) },
    $unset: { epoch: 1 },
  } as const;
  return { updateOne: { filter, update } };
}

/** The outcomes whose write found its job. */
async function findWon(collections: Collections, writeIds: WriteIds): Promise<Set<JobOutcome>> {
  const rids = [...writeIds.keys()].map((each) => each.rid);
  const written = await collections.jobs
    .find(
      { _id: { $in: rids }, mark: { $in: [...writeIds.values()] } },
      { projection: { mark: 1 } },
    )
    .toArray();
  const won = new Set(written.map((each) => each.mark));
  return new Set([...writeIds].flatMap(([each, writeId]) => (won.has(writeId) ? each : [])));
}
