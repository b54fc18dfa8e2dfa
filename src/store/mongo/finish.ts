import type { AnyBulkWriteOperation } from 'mongodb';
import { recordBytesOf } from '../../domain/quotas.ts';
import type { JobOutcome } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument, Tombstone } from './collections.ts';
import { createDelta, type Ledger } from './counts.ts';
import { deliveryDocument, insertRecords, resultDocument } from './records.ts';

type Verdict = 'won' | 'lost';
type End = Extract<JobOutcome, { kind: 'stored' | 'delivery' }>;

const isEnd = (outcome: JobOutcome): outcome is End =>
  outcome.kind === 'stored' || outcome.kind === 'delivery';

/** What a job's document keeps of it once it has ended: nothing that is large. */
export const SHED = {
  url: 1,
  body: 1,
  parameters: 1,
  callbackHeaders: 1,
  queued: 1,
  expires: 1,
} as const;

/** Makes `QueueStore.finish`. */
export function createFinish(c: Collections, ledger: Ledger) {
  return async function finish(
    outcomes: readonly JobOutcome[],
    now: Date,
    lease?: { readonly epoch: number },
  ): Promise<Verdict[]> {
    const crawlerIds = [...new Set(outcomes.map((each) => each.crawlerId))];
    const verdicts = new Map<JobOutcome, Verdict>();
    await Promise.all(
      crawlerIds.map((crawlerId) =>
        ledger.inTurn(crawlerId, async () => {
          const own = outcomes.filter((each) => each.crawlerId === crawlerId);
          const won = await finishOwn(c, ledger, crawlerId, own, now, lease?.epoch);
          for (const each of own) verdicts.set(each, won.has(each) ? 'won' : 'lost');
        }),
      ),
    );
    return outcomes.map((each) => verdicts.get(each) ?? 'lost');
  };
}

/** Ends jobs of one crawler; those that were won. */
async function finishOwn(
  c: Collections,
  ledger: Ledger,
  crawlerId: string,
  outcomes: readonly JobOutcome[],
  now: Date,
  epoch: number | undefined,
): Promise<Set<JobOutcome>> {
  const seq = ledger.nextSeq();
  const by = ledger.processId;
  const rids = outcomes.map((each) => each.rid);
  const [crawler, jobs] = await Promise.all([
    c.crawlers.findOne({ _id: crawlerId }, { projection: { accountId: 1 } }),
    c.jobs
      .find({ _id: { $in: rids }, crawlerId }, { projection: { attempt: 1, retry: 1, size: 1 } })
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
  await stage(c, crawler, marks, now, epoch);

  const moves = [...marks].map(([each, mark]) => moveOf(each, now, { by, seq, mark }));
  const { matchedCount } = await c.jobs.bulkWrite(moves, { ordered: false });
  const won = matchedCount === marks.size ? new Set(marks.keys()) : await wonOf(c, marks);

  const delta = createDelta(now);
  for (const each of won) {
    if (isEnd(each)) continue;
    const retrying = each.kind === 'retry' || (found.get(each.rid)?.retry ?? 0) > 0;
    delta.add('running', -1);
    if (retrying) delta.add('retrying', 1);
    delta.addQueued(1);
    if (each.kind === 'retry') delta.addDay('retries', 1);
  }
  const ended = [...won].filter(isEnd).map((each) => ({
    rid: each.rid,
    tombstone: {
      ...tombstoneOf(each, now, { by, seq }, isHeld(each, epoch)),
      size: found.get(each.rid)?.size ?? 0,
    },
  }));
  const there = await ledger.settle({ crawlerId, by, seq, ended }, now, delta);
  await discard(c, there ? [...marks].filter(([each]) => !won.has(each)) : [...marks]);
  return there ? won : new Set();
}

/** Writes the records that the ends bring, before any job has ended. */
async function stage(
  c: Collections,
  { _id: crawlerId, accountId }: Pick<CrawlerDocument, '_id' | 'accountId'>,
  marks: ReadonlyMap<JobOutcome, string>,
  now: Date,
  epoch: number | undefined,
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
          isHeld(each, epoch) ? epoch : undefined,
        )
      : [],
  );
  await Promise.all([insertRecords(c.results, results), insertRecords(c.deliveries, deliveries)]);
}

function isHeld(outcome: JobOutcome, epoch: number | undefined): boolean {
  return outcome.kind === 'delivery' && outcome.held && epoch !== undefined;
}

/** Removes the records of ends that came too late. */
async function discard(c: Collections, lost: readonly [JobOutcome, string][]): Promise<void> {
  await Promise.all(
    lost.map(async ([{ kind, rid }, mark]) => {
      if (kind === 'stored') await c.results.deleteOne({ _id: rid, mark });
      if (kind === 'delivery') await c.deliveries.deleteOne({ _id: rid, mark });
    }),
  );
}

function tombstoneOf(
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

function moveOf(
  outcome: JobOutcome,
  now: Date,
  batch: { readonly by: string; readonly seq: number; readonly mark: string },
): AnyBulkWriteOperation<JobDocument> {
  const { rid, crawlerId, attempt } = outcome;
  const { by, seq, mark } = batch;
  const filter = {
    _id: rid,
    crawlerId,
    attempt,
    ...(outcome.timedOut === true ? ({ expires: true } as const) : ({ state: 'running' } as const)),
  };
  if (isEnd(outcome)) {
    const tombstone = tombstoneOf(outcome, now, { by, seq }, false);
    // Whether it is held is known by the delivery itself: only a staged one is handed over.
    return {
      updateOne: { filter, update: { $set: { state: 'ended', mark, ...tombstone }, $unset: SHED } },
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
  // Never tried, so it is as it was: its queue deadline applies again.
  const untried = { $eq: ['$retry', 0] };
  const deadline = { $and: [untried, { $eq: [{ $type: '$queueDeadline' }, 'date'] }] };
  return {
    updateOne: {
      filter,
      update: [
        {
          $set: {
            state: { $cond: [untried, 'waiting', 'retrying'] },
            queued: true,
            due,
            mark,
            firstTriedAt: { $cond: [untried, '$$REMOVE', '$firstTriedAt'] },
            expires: { $cond: [deadline, true, '$$REMOVE'] },
          },
        },
        { $unset: 'epoch' },
      ],
    },
  };
}

async function wonOf(
  c: Collections,
  marks: ReadonlyMap<JobOutcome, string>,
): Promise<Set<JobOutcome>> {
  const rids = [...marks.keys()].map((each) => each.rid);
  const moved = await c.jobs
    .find({ _id: { $in: rids }, mark: { $in: [...marks.values()] } }, { projection: { mark: 1 } })
    .toArray();
  const won = new Set(moved.map((each) => each.mark));
  return new Set([...marks].flatMap(([each, mark]) => (won.has(mark) ? each : [])));
}
