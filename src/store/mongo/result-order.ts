import { randomBytes } from 'node:crypto';
import type { Binary, ClientSession } from 'mongodb';
import { defined } from '../../domain/defined.ts';
import { startOf } from '../cursor.ts';
import type { NumberedResult, ResultSelection, ResultStore } from '../store.ts';
import type { Collections, ResultOrderDocument } from './collections.ts';
import { findIds } from './find-ids.ts';
import type { Lanes } from './lanes.ts';
import { scopeKey } from './records.ts';

/** Results that one transaction numbers. */
const BATCH = 500;
/** Sessions that are noted of an order, the latest. */
const MAX_NOTED = 8;
/** Batches that one call numbers while it finds nothing of its crawler. */
const MAX_BATCHES = 20;

/**
 * The order of a token's results. Several processes end jobs, on clocks of their own, so neither times
 * nor identifiers are an order in which nothing appears late. Results are numbered when somebody
 * reads the order: one transaction takes the next numbers and gives them to results, so who sees
 * number n sees all up to n.
 */
export function createResultOrder(
  { results, resultOrders }: Collections,
  { transactions }: Pick<Lanes, 'transactions'>,
): Pick<ResultStore, 'following'> & {
  /** The `rid`s of the first results of the order up to `place`. */
  ridsUpTo(...args: Parameters<ResultStore['removeUpTo']>): Promise<string[]>;
} {
  const readOrder = (scope: string) => resultOrders.findOne({ _id: scope });

  async function openOrder(scope: string): Promise<ResultOrderDocument> {
    const order = await readOrder(scope);
    if (order !== null) return order;
    const series = randomBytes(8).toString('hex');
    await resultOrders.updateOne(
      { _id: scope },
      { $setOnInsert: { series, last: 0 } },
      { upsert: true },
    );
    return openOrder(scope);
  }

  /** Numbers the next results; false when all have a number. */
  async function numberMore({ _id: scope, last }: ResultOrderDocument): Promise<boolean> {
    await using own = transactions.startSession();
    const id = own.id?.id as Binary;
    const others = async () => {
      const { sessions = [] } = (await readOrder(scope)) ?? {};
      return sessions.filter((each) => each.toString('hex') !== id.toString('hex'));
    };
    // Noted first, so that others can abort the transaction if this process dies.
    const noted = { $push: { sessions: { $each: [id], $slice: -MAX_NOTED } } };
    return await transactions.unblocked(others, async () => {
      await resultOrders.updateOne({ _id: scope }, noted);
      return numberIn(own, scope, last);
    });
  }

  function numberIn(own: ClientSession, scope: string, last: number): Promise<boolean> {
    const body = async (session: ClientSession): Promise<boolean> => {
      const next = { sort: { storedAt: 1, _id: 1 }, limit: BATCH, session } as const;
      const rids = await findIds(results, { scope, seq: 0 }, next);
      if (rids.length === 0) return false;
      const { modifiedCount } = await resultOrders.updateOne(
        { _id: scope, last },
        { $set: { last: last + rids.length } },
        { session },
      );
      // When another process has taken these numbers, its results are read next.
      if (modifiedCount === 0) return true;
      const place = { $indexOfArray: [{ $literal: rids }, '$_id'] };
      await results.updateMany(
        { _id: { $in: rids }, scope, seq: 0 },
        [{ $set: { seq: { $add: [last + 1, place] } } }],
        // By the index of the order it might read all that have no number.
        { session, hint: { _id: 1 } },
      );
      return true;
    };
    return transactions.run(body, { session: own });
  }

  async function read(
    { crawlerId, batchId, ...selection }: ResultSelection,
    from: number,
    to: number,
    limit: number,
  ): Promise<NumberedResult[]> {
    const found = await results
      .find(
        {
          scope: scopeKey(selection),
          ...(crawlerId === undefined || batchId !== undefined ? {} : { crawlerId }),
          ...defined({ batchId }),
          seq: { $gt: from, $lte: to },
        },
        { projection: { seq: 1, size: 1 } },
      )
      .sort({ seq: 1 })
      .limit(limit)
      .toArray();
    return found.map(({ _id, seq, size }) => ({ rid: _id, seq, size }));
  }

  return {
    async following(selection, after, limit) {
      const scope = scopeKey(selection);
      let start: number | undefined;
      for (let batches = 0; ; batches += 1) {
        const order = await openOrder(scope);
        const { series, last } = order;
        start ??= startOf(after, { series, seq: last });
        const found = await read(selection, start, last, limit);
        const seq = found.length < limit ? last : (found.at(-1)?.seq ?? last);
        const place = { series, seq };
        if (found.length > 0 || batches === MAX_BATCHES) {
          return { results: found, place, isEnd: false };
        }
        start = last;
        if (await numberMore(order)) continue;
        // Another reader may have numbered them just now.
        if ((await readOrder(scope))?.last === last) return { results: [], place, isEnd: true };
      }
    },

    async ridsUpTo(selection, place, limit) {
      const order = await readOrder(scopeKey(selection));
      if (order?.series !== place.series) return [];
      return (await read(selection, 0, place.seq, limit)).map(({ rid }) => rid);
    },
  };
}
