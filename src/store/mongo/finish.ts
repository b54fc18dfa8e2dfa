import { chargedRecordBytes } from '../../domain/quotas.ts';
import { resultEnd } from '../../domain/tally.ts';
import { isHeld } from '../held-deliveries.ts';
import type { JobOutcome, QueueStore, StartedJob } from '../store.ts';
import type {
  Collections,
  DeliveryDocument,
  JobDocument,
  ResultDocument,
  Tombstone,
} from './collections.ts';
import type { Batch, Returned } from './counts.ts';
import { FIELDS_DROPPED_AT_END, untriedUpdate } from './job-document.ts';
import type { JobFacts, KnownJobs } from './job-facts.ts';
import type { Ledger } from './ledger.ts';
import {
  deliveryDocument,
  insertRecords,
  insertResults,
  resultDocument,
  SHARED_MARK,
} from './records.ts';
import { type BatchId, batchFields, batchLabel } from './tombstones.ts';
import { type OneUpdate, updateEach } from './update-each.ts';

type End = Extract<JobOutcome, { kind: 'stored' | 'delivery' }>;

const isEnd = (outcome: JobOutcome): outcome is End =>
  outcome.kind === 'stored' || outcome.kind === 'delivery';

/** A job whose start or end is written, by name of the write that brings it. */
type Write = { readonly writeId: string; readonly facts: JobFacts } & (
  | { readonly outcome: JobOutcome }
  | { readonly start: StartedJob }
);

/** What the writes on one crawler's jobs share. */
export interface JobWriting {
  readonly crawlerId: string;
  readonly batch: BatchId;
  readonly now: Date;
  readonly purges: number;
  readonly accountId: string;
  /** The epoch of the lease of the writer; without it nothing starts, and no delivery is held. */
  readonly epoch: number | undefined;
}

/** What was won. */
export interface WrittenJobs {
  readonly outcomes: ReadonlySet<JobOutcome>;
  /** The starts that an earlier try of the turn has written; they are counted already. */
  readonly repeated: readonly StartedJob[];
  readonly started: readonly { readonly start: StartedJob; readonly facts: JobFacts }[];
  /** Gives the starts back, as if they had never been written. */
  takeBackStarts(): Promise<void>;
  /** The batch to settle. */
  readonly batch: Batch;
  /** Removes the records of ends that were lost; of all ends if the crawler is gone. */
  discard(exists: boolean): Promise<void>;
}

/** Creates `QueueStore.finish`. */
export function createFinish(
  collections: Collections,
  ledger: Ledger,
  known: KnownJobs,
): QueueStore['finish'] {
  async function finishOwn(
    crawlerId: string,
    outcomes: readonly JobOutcome[],
    now: Date,
  ): Promise<ReadonlySet<JobOutcome>> {
    const crawler = await collections.crawlers.findOne(
      { _id: crawlerId },
      { projection: { accountId: 1, purges: 1, recounts: 1 } },
    );
    if (crawler === null) return new Set();
    const { purges, accountId } = crawler;
    const batch = ledger.newBatch();
    const writing = { crawlerId, batch, now, purges, accountId, epoch: undefined };
    const written = await writeJobs(collections, known, writing, outcomes, []);
    if (written === undefined) return new Set();
    const { exists } = await ledger.settle(written.batch, now, crawler);
    await ledger.tidy(crawlerId, () => written.discard(exists));
    return exists ? written.outcomes : new Set();
  }

  return async (outcomes, now) => {
    const byCrawler = Map.groupBy(outcomes, (each) => each.crawlerId);
    const wins = await Promise.all(
      [...byCrawler].map(([crawlerId, own]) =>
        ledger.runExclusive(crawlerId, () => finishOwn(crawlerId, own, now)),
      ),
    );
    return outcomes.map((each) => (wins.some((won) => won.has(each)) ? 'won' : 'lost'));
  };
}

/**
 * Writes starts and ends of jobs in one go; the caller counts them. Undefined when none of the jobs
 * is in the attempt that is named. Each gets a write id of its own, because a batch may hold two
 * outcomes of one job, and only one of them may win.
 */
export async function writeJobs(
  collections: Collections,
  known: KnownJobs,
  writing: JobWriting,
  outcomes: readonly JobOutcome[],
  started: readonly StartedJob[],
): Promise<WrittenJobs | undefined> {
  const { crawlerId, batch, now } = writing;
  const facts = await known.find(crawlerId, [...outcomes, ...started]);
  const items = [
    ...outcomes.map((outcome) => ({ outcome })),
    ...started.map((start) => ({ start })),
  ];
  const writes = items.flatMap((each, index): Write[] => {
    const job = 'start' in each ? each.start : each.outcome;
    const found = facts.get(job.rid);
    if (found === undefined || !isExpected(job, found)) return [];
    if ('crawlerId' in job && job.crawlerId !== crawlerId) return [];
    return [{ ...each, writeId: `${batchLabel(batch)}.${index}`, facts: found }];
  });
  if (writes.length === 0) return undefined;
  // A write that fails leaves unknown what it has done, so the next try reads the jobs again.
  for (const { rid } of [...outcomes, ...started]) known.forget(rid);
  await stageRecords(collections, writing, writes);
  const updates = writes.map((each) => updateFor(each, writing));
  const matched = await updateEach(collections.jobs, updates);
  const { won, repeated } =
    matched === writes.length
      ? { won: writes, repeated: [] }
      : await findWon(collections, writes, writing);
  const ended = won.flatMap((each) => ('outcome' in each ? [each] : []));
  const begun = won.flatMap((each) => ('start' in each ? [each] : []));
  for (const { rid, attempt } of [...begun.map(({ start }) => start), ...repeated]) {
    const before = facts.get(rid);
    if (before !== undefined) known.note(rid, { ...before, attempt, state: 'running' });
  }
  const ends = ended.flatMap(({ outcome, facts: { gen, size = 0, state } }) => {
    if (!isEnd(outcome)) return [];
    const tombstone = toTombstone(outcome, now, batch, { from: state, epoch: writing.epoch });
    return [{ rid: outcome.rid, gen, tombstone: { ...tombstone, size } }];
  });
  const returned = ended.flatMap(({ outcome, facts: found }) =>
    isEnd(outcome) ? [] : [toReturned(outcome, found)],
  );
  const lost = writes.filter((each) => !won.includes(each));
  return {
    outcomes: new Set(ended.map(({ outcome }) => outcome)),
    started: begun,
    repeated,
    batch: { crawlerId, ...batch, ended: ends, returned },
    async takeBackStarts() {
      if (begun.length === 0) return;
      for (const { start } of begun) known.forget(start.rid);
      const rids = begun.map(({ start }) => start.rid);
      const mark = { $in: begun.map(({ writeId }) => writeId) };
      await collections.jobs.updateMany(
        { _id: { $in: rids }, mark, state: 'running' },
        untriedUpdate(`${batchLabel(batch)}.back`),
      );
    },
    discard: (exists) => discard(collections, exists ? lost : writes),
  };
}

/** Whether the job is in the attempt, and the state, that its start or end names. */
function isExpected(
  job: JobOutcome | StartedJob,
  { attempt, state }: Pick<JobFacts, 'attempt' | 'state'>,
): boolean {
  if ('timedOut' in job && job.timedOut) return attempt === job.attempt;
  if (state === 'running') return attempt === job.attempt;
  return job.startedAt !== undefined && attempt === job.attempt - 1;
}

function toReturned({ kind }: JobOutcome, facts: JobFacts): Returned {
  const { gen, size = 0, retry } = facts;
  const again = kind === 'retry';
  const from = facts.state as Returned['from'];
  return { gen, size, retrying: again || retry > 0, from, again };
}

/** Writes the records that the ends bring, before any job has ended. */
async function stageRecords(
  collections: Collections,
  { accountId, crawlerId, now, epoch }: JobWriting,
  writes: readonly Write[],
): Promise<void> {
  const results: ResultDocument[] = [];
  const deliveries: DeliveryDocument[] = [];
  for (const write of writes) {
    if (!('outcome' in write) || !isEnd(write.outcome)) continue;
    const { outcome, writeId } = write;
    const { record, expiresAt } = outcome;
    const origin = { claim: outcome.attempt, mark: writeId };
    if (outcome.kind === 'stored') {
      const selection = { accountId, tokenType: outcome.tokenType, crawlerId };
      results.push(resultDocument({ selection, record, origin, now, expiresAt }));
    } else {
      const callbackHeaders = JSON.stringify(outcome.callbackHeaders);
      const holder = isHeld(outcome) ? epoch : undefined;
      deliveries.push(
        deliveryDocument({
          crawlerId,
          record,
          callbackHeaders,
          origin,
          now,
          expiresAt,
          epoch: holder,
          traceparent: outcome.traceparent,
        }),
      );
    }
  }
  await Promise.all([
    insertResults(collections.results, results),
    insertRecords(collections.deliveries, deliveries, (each) =>
      shareDelivery(collections, each, epoch),
    ),
  ]);
}

/**
 * Marks a delivery that another write brought too, and holds it for the lease of `current`, or
 * stages it, as this write wants: an earlier try of the turn, which failed after it had written the
 * delivery, may have wanted the other.
 */
async function shareDelivery(
  { deliveries }: Collections,
  { _id, claim, state, attempt, epoch }: DeliveryDocument,
  current: number | undefined,
): Promise<void> {
  // One that was sent already belongs to a job that has ended, which nobody discards either.
  const unsent = { state: { $in: ['staged', 'sending'] }, attempt: { $lte: 1 } } as const;
  await deliveries.updateOne({ _id, ...unsent }, { $set: { mark: SHARED_MARK } });
  if (current === undefined) return;
  await deliveries.updateOne(
    { _id, claim, $or: [{ state: 'staged' }, { state: 'sending', epoch: current, attempt: 1 }] },
    epoch === undefined
      ? { $set: { state, attempt }, $unset: { epoch: 1 } }
      : { $set: { state, attempt, epoch } },
  );
}

/** Removes the records of outcomes that were lost, but for those that other writes brought too. */
async function discard(collections: Collections, lost: readonly Write[]): Promise<void> {
  await Promise.all(
    lost.map(async (each) => {
      if (!('outcome' in each)) return;
      const { kind, rid } = each.outcome;
      const written = { _id: rid, mark: each.writeId };
      if (kind === 'stored') await collections.results.deleteOne(written);
      if (kind === 'delivery') await collections.deliveries.deleteOne(written);
    }),
  );
}

function toTombstone(
  outcome: End,
  now: Date,
  batch: BatchId,
  { from, epoch }: { readonly from: JobFacts['state']; readonly epoch: number | undefined },
): Tombstone {
  const { cbStatus } = outcome.record;
  const held = isHeld(outcome) && epoch !== undefined;
  return {
    ...batchFields(batch),
    from: from as Tombstone['from'],
    end: resultEnd(cbStatus),
    cbStatus,
    billed: outcome.billed,
    kept: chargedRecordBytes(outcome.record),
    timedOut: outcome.timedOut === true,
    endedAt: now,
    ...(outcome.kind === 'delivery' ? { delivers: !held } : {}),
  };
}

/** The write that starts, ends or returns a job, if it still is in the state and attempt named. */
function updateFor(write: Write, writing: JobWriting): OneUpdate<JobDocument> {
  const { writeId: mark, facts } = write;
  const { crawlerId, batch, now, purges, epoch } = writing;
  if ('start' in write) {
    const { rid, attempt, startedAt } = write.start;
    const filter = {
      _id: rid,
      crawlerId,
      queued: true,
      gen: purges,
      attempt: attempt - 1,
    } as const;
    const $set = {
      state: 'running' as const,
      attempt,
      mark,
      ...(epoch === undefined ? {} : { epoch }),
      ...(facts.retry === 0 ? { firstTriedAt: startedAt } : {}),
    };
    return { filter, update: { $set, $unset: { queued: 1, expires: 1 } } };
  }
  const { outcome } = write;
  const { rid, attempt, startedAt } = outcome;
  const filter = {
    _id: rid,
    crawlerId,
    attempt: facts.attempt,
    ...(outcome.timedOut === true
      ? ({ expires: true, gen: purges } as const)
      : facts.state === 'running'
        ? ({ state: 'running' } as const)
        : ({ queued: true, gen: purges } as const)),
  };
  if (isEnd(outcome)) {
    const tombstone = toTombstone(outcome, now, batch, { from: facts.state, epoch });
    const ended = { state: 'ended', mark, ...tombstone } as const;
    return { filter, update: { $set: ended, $unset: FIELDS_DROPPED_AT_END } };
  }
  const due = outcome.dueAt ?? now;
  if (outcome.kind === 'release') {
    return { filter, update: untriedUpdate(mark, { due, attempt }) };
  }
  const first = startedAt !== undefined && facts.retry === 0 ? { firstTriedAt: startedAt } : {};
  const update = {
    $set: {
      state: 'retrying',
      queued: true,
      due,
      attempt,
      mark,
      ...first,
      ...(outcome.failure === undefined ? {} : { lastFailure: outcome.failure }),
    },
    $inc: { retry: 1, ...(outcome.crashed === true ? { crashes: 1 } : {}) },
    $unset: { epoch: 1, expires: 1 },
  };
  return { filter, update };
}

/** The writes that found their job, and the starts that an earlier try of the turn has written. */
async function findWon(
  collections: Collections,
  writes: readonly Write[],
  { epoch }: JobWriting,
): Promise<{ readonly won: Write[]; readonly repeated: StartedJob[] }> {
  const ridOf = (each: Write): string => ('start' in each ? each.start.rid : each.outcome.rid);
  const found = await collections.jobs
    .find(
      { _id: { $in: writes.map(ridOf) } },
      { projection: { mark: 1, state: 1, attempt: 1, epoch: 1 } },
    )
    .toArray();
  const jobs = new Map(found.map((each) => [each._id, each]));
  const won = writes.filter((each) => jobs.get(ridOf(each))?.mark === each.writeId);
  const repeated = writes.flatMap((each) => {
    if (!('start' in each) || won.includes(each)) return [];
    const job = jobs.get(each.start.rid);
    const isRunning = job?.state === 'running' && job.attempt === each.start.attempt;
    return isRunning && job.epoch === epoch ? [each.start] : [];
  });
  return { won, repeated };
}
