import { randomBytes } from 'node:crypto';
import { startOf } from '../cursor.ts';
import type { NumberedResult, ResultSelection, ResultStore } from '../store.ts';
import type { Collections, ResultDocument, ResultOrderDocument } from './collections.ts';
import { scopeKey } from './records.ts';
import { updateEach } from './update-each.ts';

/** Results that one write numbers: their `rid`s wait in one document. */
const BATCH = 500;
/** Batches that one call numbers while it finds nothing of its crawler. */
const MAX_BATCHES = 20;

type RidOnly = Pick<ResultDocument, '_id'>;

/**
 * The order of a token's results. Several processes end jobs, on clocks of their own, and a result
 * is written before its job ends; so neither times nor identifiers are an order in which nothing
 * appears late. Results are numbered after their jobs have ended, when somebody reads the order.
 *
 * The document of the order is the commit: one conditional update takes the next numbers and notes
 * the `rid`s that get them (`batch`). Then each result gets its number, unless it has one, and the
 * batch is dropped. Who finds a batch completes it, and numbers or reads only then: every reader
 * that sees number n can see all up to n. A process that was stopped and completes its batch late
 * writes nothing, because the results have these very numbers.
 */
export function createResultOrder(
  collections: Collections,
  /** Those of the `rid`s whose jobs have not ended. */
  uncommitted: (rids: readonly string[]) => Promise<Set<string>>,
): Pick<ResultStore, 'following'> & {
  /** The `rid`s of the first results of the order up to `place`. */
  ridsUpTo(...args: Parameters<ResultStore['removeUpTo']>): Promise<string[]>;
} {
  const { results, resultOrders } = collections;

  /** The order as it is; undefined when nothing was ever numbered. */
  async function readOrder(scope: string): Promise<ResultOrderDocument | undefined> {
    const order = await resultOrders.findOne({ _id: scope });
    if (order === null) return undefined;
    if (order.batch.length > 0) await complete(order);
    return order;
  }

  async function openOrder(scope: string): Promise<ResultOrderDocument> {
    const order = await readOrder(scope);
    if (order !== undefined) return order;
    const series = randomBytes(8).toString('hex');
    await resultOrders.updateOne(
      { _id: scope },
      { $setOnInsert: { series, last: 0, batch: [] } },
      { upsert: true },
    );
    return openOrder(scope);
  }

  async function complete({
    _id: scope,
    last,
    batch,
  }: Omit<ResultOrderDocument, 'series'>): Promise<void> {
    const first = last - batch.length + 1;
    await updateEach(
      results,
      batch.map((_id, index) => ({
        filter: { _id, scope, seq: 0 },
        update: { $set: { seq: first + index } },
      })),
    );
    await resultOrders.updateOne({ _id: scope, last }, { $set: { batch: [] } });
  }

  /** Numbers the next results whose jobs have ended; false when there are none. */
  async function numberMore({ _id: scope, last }: ResultOrderDocument): Promise<boolean> {
    const rids = await unnumbered(scope);
    if (rids.length === 0) return false;
    // When another process has taken these numbers, its results are read next.
    const { modifiedCount } = await resultOrders.updateOne(
      { _id: scope, last, batch: [] },
      { $set: { batch: rids, last: last + rids.length } },
    );
    if (modifiedCount > 0) await complete({ _id: scope, last: last + rids.length, batch: rids });
    return true;
  }

  /** Oldest first. Those whose jobs have not ended are passed over, however many they are. */
  async function unnumbered(scope: string): Promise<string[]> {
    for (let skip = 0; ; skip += BATCH) {
      const found = await results
        .find<RidOnly>({ scope, seq: 0 }, { projection: { _id: 1 } })
        .sort({ storedAt: 1, _id: 1 })
        .skip(skip)
        .limit(BATCH)
        .toArray();
      const rids = found.map(({ _id }) => _id);
      const hidden = await uncommitted(rids);
      const ended = rids.filter((rid) => !hidden.has(rid));
      if (ended.length > 0 || rids.length < BATCH) return ended;
    }
  }

  async function read(
    { crawlerId, ...selection }: ResultSelection,
    from: number,
    to: number,
    limit: number,
  ): Promise<NumberedResult[]> {
    const found = await results
      .find(
        {
          scope: scopeKey(selection),
          ...(crawlerId === undefined ? {} : { crawlerId }),
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
