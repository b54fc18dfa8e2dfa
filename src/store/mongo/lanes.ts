import type { Binary, ClientSession } from 'mongodb';
import { toWall } from '../../domain/clock.ts';
import { databaseUnavailable } from '../../domain/errors.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import { toDay } from '../../domain/stats.ts';
import { type CountChanges, createCountChanges } from '../count-changes.ts';
import { type AccountIncrements, createAccountIncrements } from './account-increments.ts';
import type { Collections, CountsDocument } from './collections.ts';
import { countsUpdate } from './counts-document.ts';
import { findIds } from './find-ids.ts';
import { createKeyedMutex } from './keyed-mutex.ts';
import { readPurges } from './queue-reads.ts';
import type { Transactions } from './transactions.ts';

/** What a process writes of a crawler one after the other: its turns, or its pushes. */
export type LaneName = 'turn' | 'push';

/** A lane: the part of the crawler's counters that it writes, and its session. */
export interface Lane {
  readonly id: string;
  readonly crawlerId: string;
  readonly session: ClientSession;
  /** The lease whose turns it writes; undefined before the first. */
  readonly epoch: number | undefined;
}

/** What must hold of a lane's part for a transaction to count. */
export interface LaneCondition {
  readonly gen: number;
  readonly epoch?: number | undefined;
  readonly touches?: number;
  readonly accountId: string;
  readonly now: Date;
}

/** The transaction is not written: the lane's part has changed or is gone. Read again, and repeat. */
export class Fenced extends Error {}

/** The writes of this process, each counted in the transaction that does it. */
export interface Lanes {
  readonly transactions: Transactions;
  /** The totals of accounts. */
  readonly accounts: AccountIncrements;
  /** Runs the operations on one crawler one after the other. */
  runExclusive<T>(crawlerId: string, work: () => Promise<T>): Promise<T>;
  /**
   * The lane, whose part exists then, for the lease `epoch` if it is given. An end of that lease
   * after this finds the part; the caller reads who has the lease only after this.
   */
  enlist(crawlerId: string, name: LaneName, now: Date, epoch?: number): Promise<Lane>;
  /**
   * Runs `body` in a transaction and counts `changes`; without them those that it makes. Throws
   * {@link Fenced}, after what a purge has taken is counted.
   */
  write<T>(
    lane: Lane,
    condition: LaneCondition,
    body: (session: ClientSession, changes: CountChanges) => Promise<T>,
    changes?: CountChanges,
  ): Promise<T>;
  /**
   * Writes a change of a crawler that belongs to no lease: runs `body` as `write` does, with the
   * number of the crawler's purges, until it is written. Undefined if the crawler is gone.
   */
  change<T>(
    crawlerId: string,
    now: Date,
    body: (session: ClientSession, changes: CountChanges, purges: number) => Promise<T>,
  ): Promise<T | undefined>;
  /** Counts what a purge has taken as purged, and returns the number. */
  raise(crawlerId: string, gen: number, now: Date): Promise<number>;
  /** Runs `work`, and aborts open transactions of others on the crawler when it waits for a while. */
  unblocked<T>(crawlerId: string, work: () => Promise<T>): Promise<T>;
  /** Aborts the transactions that the parts' lanes may have left open, but for those of this process. */
  abort(parts: readonly PartOfSession[]): Promise<void>;
  /**
   * Runs `body` in a transaction that writes what others count of the crawler. Its session is noted
   * first, so that others can abort it if this process dies.
   */
  transact<T>(crawlerId: string, body: (session: ClientSession) => Promise<T>): Promise<T>;
  /** Repeats `work` while it is fenced. */
  untilWritten<T>(work: () => Promise<T>): Promise<T>;
}

type PartOfSession = Pick<CountsDocument, '_id' | 'session' | 'sessions'>;

/** Lanes that one process remembers. */
const MAX_LANES = 2_000;
const MAX_FENCED = 30;
/** Sessions that are noted of a crawler, the latest. */
const MAX_NOTED = 8;
/** Creates the lanes of this process. */
export function createLanes(
  collections: Collections,
  transactions: Transactions,
  processId: string,
): Lanes {
  const { counts, time } = collections;
  const mutex = createKeyedMutex();
  const accounts = createAccountIncrements(collections);
  const lanes = createLruMap<string, Lane>({
    maxEntries: MAX_LANES,
    onEvict: ({ session }) => void session.endSession(),
  });
  let lastNo = 0;

  function forget({ id, session }: Lane): void {
    lanes.delete(id);
    void session.endSession();
  }

  /** The sessions of the parts, but for those of this process. */
  const sessionsOf = (parts: readonly PartOfSession[], except?: Binary): Binary[] =>
    parts
      .filter(({ _id }) => !_id.includes(`/${processId}/`))
      .flatMap(({ session, sessions = [] }) => session ?? sessions)
      .filter((id) => id.toString('hex') !== except?.toString('hex'));

  function unblocked<T>(crawlerId: string, work: () => Promise<T>, except?: Binary): Promise<T> {
    return transactions.unblocked(async () => {
      const parts = counts.find({ crawlerId }, { projection: { session: 1, sessions: 1 } });
      return sessionsOf(await parts.toArray(), except);
    }, work);
  }

  async function enlist(
    crawlerId: string,
    name: LaneName,
    now: Date,
    epoch?: number,
  ): Promise<Lane> {
    const id = `${crawlerId}/${processId}/${name}`;
    // A session ends when all connections are made anew.
    const held = lanes.get(id);
    const known = held?.session.hasEnded === true ? undefined : held;
    if (known !== undefined && (epoch === undefined || known.epoch === epoch)) return known;
    const session = known?.session ?? transactions.startSession();
    await counts.updateOne(
      { _id: id },
      {
        $set: { session: session.id?.id, at: now, ...(epoch === undefined ? {} : { epoch }) },
        $setOnInsert: { crawlerId, gen: 0 },
      } as never,
      { upsert: true },
    );
    const lane = { id, crawlerId, session, epoch };
    lanes.set(id, lane);
    return lane;
  }

  async function write<T>(
    lane: Lane,
    { gen, epoch, touches, accountId, now }: LaneCondition,
    body: (session: ClientSession, changes: CountChanges) => Promise<T>,
    given?: CountChanges,
  ): Promise<T> {
    const tx = `${processId}.${++lastNo}`;
    const { id: _id, session } = lane;
    const wasCommitted = async () => (await counts.countDocuments({ _id, tx }, { limit: 1 })) === 1;
    let changes = given ?? createCountChanges();
    try {
      const value = await transactions.run(
        async () => {
          changes = given ?? createCountChanges();
          const done = await body(session, changes);
          const { $max, $set, ...update } = countsUpdate(changes, toWall(time, now));
          const { matchedCount } = await counts.updateOne(
            {
              _id,
              gen,
              ...(epoch === undefined ? {} : { epoch }),
              ...(touches === undefined ? {} : { touches: touches === 0 ? null : touches }),
            } as never,
            { ...update, $set: { ...$set, tx, accountId }, $max: { ...$max, at: now } },
            { session },
          );
          if (matchedCount === 0) throw new Fenced();
          return done;
        },
        { session, wasCommitted },
      );
      accounts.add(accountId, changes.account);
      return value;
    } catch (error) {
      if (error instanceof Fenced) {
        forget(lane);
        await raise(lane.crawlerId, gen, now);
      }
      throw error;
    }
  }

  async function raise(crawlerId: string, gen: number, now: Date): Promise<number> {
    const today = toDay(toWall(time, now));
    const path = `days.${today}.purged`;
    const held = { $add: [zeroed('waiting'), zeroed('retrying')] };
    const older = await findIds(counts, { crawlerId, gen: { $lt: gen } });
    const before = await unblocked(crawlerId, () =>
      Promise.all(
        older.map((_id) =>
          counts.findOneAndUpdate(
            { _id, gen: { $lt: gen } },
            [
              {
                $set: {
                  gen,
                  purged: { $add: [zeroed('purged'), held] },
                  [path]: { $add: [{ $ifNull: [`$${path}`, 0] }, held] },
                  firstDay: { $min: ['$firstDay', today] },
                  waiting: 0,
                  retrying: 0,
                  queuedBytes: 0,
                },
              },
            ],
            {
              returnDocument: 'before',
              projection: { waiting: 1, retrying: 1, queuedBytes: 1, accountId: 1 },
            },
          ),
        ),
      ),
    );
    let purged = 0;
    for (const part of before) {
      const { waiting = 0, retrying = 0, queuedBytes = 0, accountId } = part ?? {};
      purged += waiting + retrying;
      if (accountId === undefined) continue;
      accounts.add(accountId, { queued: -waiting - retrying, queuedBytes: -queuedBytes });
    }
    return purged;
  }

  async function untilWritten<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof Fenced)) throw error;
        if (tries === MAX_FENCED) throw databaseUnavailable(undefined, error);
      }
    }
  }

  return {
    transactions,
    accounts,
    abort: (parts) => transactions.abort(sessionsOf(parts)),
    unblocked,
    runExclusive: (crawlerId, work) => mutex.runExclusive(crawlerId, work),

    enlist,
    write,
    raise,
    untilWritten,

    change: (crawlerId, now, body) =>
      untilWritten(async () => {
        // Before the crawler is read, so that a purge after that finds the part.
        const lane = await enlist(crawlerId, 'turn', now);
        const crawler = await readPurges(collections, crawlerId);
        if (crawler === null) return undefined;
        const { accountId, purges: gen } = crawler;
        return unblocked(crawlerId, () =>
          write(lane, { gen, accountId, now }, (session, changes) => body(session, changes, gen)),
        );
      }),

    async transact(crawlerId, body) {
      await using session = transactions.startSession();
      const id = session.id?.id as Binary;
      const noted = { $each: [id], $slice: -MAX_NOTED };
      await unblocked(crawlerId, () =>
        counts.updateOne(
          { _id: crawlerId },
          { $push: { sessions: noted }, $setOnInsert: { crawlerId, gen: 0 } },
          { upsert: true },
        ),
      );
      return await unblocked(crawlerId, () => transactions.run(body, { session }), id);
    },
  };
}

function zeroed(field: string) {
  return { $ifNull: [`$${field}`, 0] };
}
