import type { Filter } from 'mongodb';
import { toWall } from '../../domain/clock.ts';
import { chargedBytes, chargedRecordBytes } from '../../domain/quotas.ts';
import type { StoredResult } from '../../domain/result.ts';
import { createRid } from '../../domain/rid.ts';
import { parsePageStart, ridsPage } from '../cursor.ts';
import type { ResultScope, ResultStore } from '../store.ts';
import type { Collections, ResultDocument } from './collections.ts';
import { findIds } from './find-ids.ts';
import type { Lanes } from './lanes.ts';
import { isInserted } from './mongo-errors.ts';
import { behind } from './read-part.ts';
import { hashUrl, resultDocument, scopeAccountId, scopeKey, toRecord } from './records.ts';
import { createResultOrder } from './result-order.ts';
import { resultTotals } from './stored-bytes.ts';

/** Stored results. */
export function createResults(collections: Collections, lanes: Lanes): ResultStore {
  const order = createResultOrder(collections, lanes);

  async function remove(scope: string, rids: readonly string[]): Promise<Set<string>> {
    const found = await Promise.all(
      rids.map((_id) =>
        collections.results.findOneAndDelete({ _id, scope }, { projection: { size: 1 } }),
      ),
    );
    const gone = found.filter((each) => each !== null);
    const bytes = gone.reduce((sum, { size }) => sum + chargedBytes(size), 0);
    lanes.accounts.addStored(scopeAccountId(scope), -bytes);
    return new Set(gone.map(({ _id }) => _id));
  }

  async function heldRids(scope: ResultScope): Promise<Set<string>> {
    const held = { scope: scopeKey(scope), heldUntil: { $exists: true } };
    return new Set(await findIds(collections.results, held));
  }

  return {
    async put(scope, record, now, expiresAt) {
      const keptAt = toWall(collections.time, now);
      const document = resultDocument({ selection: scope, record, keptAt, expiresAt });
      // Otherwise it is stored already.
      if (!(await isInserted(collections.results.insertOne(document)))) return keptAt;
      lanes.accounts.addStored(scope.accountId, chargedRecordBytes(record));
      return keptAt;
    },

    async get(scope, rid) {
      const document = await collections.results.findOne({
        _id: rid,
        scope: scopeKey(scope),
        heldUntil: null,
      });
      return document === null ? undefined : toResult(document);
    },

    async newest(scope, pushedUrl, page) {
      const document = await collections.results.findOne(
        {
          scope: scopeKey(scope),
          urlHash: hashUrl(pushedUrl),
          heldUntil: null,
          ...(page && { storedAt: { $gte: page.since }, pageKey: page.key }),
        },
        { sort: { storedAt: -1, _id: -1 } },
      );
      return document === null ? undefined : toResult(document);
    },

    async getMany(scope, rids) {
      const documents = await collections.results
        .find({ _id: { $in: [...rids] }, scope: scopeKey(scope) })
        .toArray();
      const found = new Map(documents.map((each) => [each._id, each]));
      return rids.flatMap((rid) => {
        const document = found.get(rid);
        return document === undefined ? [] : toResult(document);
      });
    },

    async sizes(scope, rids) {
      const documents = await collections.results
        .find(
          { _id: { $in: [...rids] }, scope: scopeKey(scope), heldUntil: null },
          { projection: { size: 1 } },
        )
        .toArray();
      return new Map(documents.map(({ _id, size }) => [_id, size]));
    },

    async hold(scope, rids, until) {
      const heldBy = createRid(until);
      await collections.results.updateMany(
        { _id: { $in: [...rids] }, scope: scopeKey(scope), heldUntil: null },
        { $set: { heldUntil: until, heldBy } },
      );
      return new Set(await findIds(collections.results, { _id: { $in: [...rids] }, heldBy }));
    },

    async release(scope, rids) {
      await showAgain(collections, { _id: { $in: [...rids] }, scope: scopeKey(scope) });
    },

    remove: (scope, rids) => remove(scopeKey(scope), rids),

    async rids(scope, page) {
      const { order, after } = parsePageStart(page);
      const direction = order === 'asc' ? 1 : -1;
      // By their names, as the index does not tell which results are held.
      const held = await heldRids(scope);
      const documents = await collections.results
        .find(
          {
            scope: scopeKey(scope),
            ...behind('storedAt', after, direction),
            ...(held.size === 0 ? {} : { _id: { $nin: [...held] } }),
          },
          { projection: { storedAt: 1 } },
        )
        .sort({ storedAt: direction, _id: direction })
        .limit(page.limit)
        .toArray();
      return ridsPage(
        order,
        documents.map(({ _id, storedAt }) => ({ rid: _id, at: storedAt })),
      );
    },

    async count(scope) {
      const all = await collections.results.countDocuments({ scope: scopeKey(scope) });
      return Math.max(all - (await heldRids(scope)).size, 0);
    },

    totals: (scope) => resultTotals(collections, scope),

    following: order.following,

    async removeUpTo(selection, place, limit) {
      const rids = await order.ridsUpTo(selection, place, limit);
      return (await remove(scopeKey(selection), rids)).size;
    },
  };
}

/** Shows held results again. */
async function showAgain({ results }: Collections, which: Filter<ResultDocument>): Promise<void> {
  await results.updateMany(
    { heldUntil: { $exists: true }, ...which },
    { $unset: { heldUntil: true, heldBy: true } },
  );
}

/** Shows results again whose hold has ended. */
export function endHolds(collections: Collections, now: Date): Promise<void> {
  return showAgain(collections, { heldUntil: { $exists: true, $lte: now } });
}

function toResult(document: ResultDocument): StoredResult {
  return { ...toRecord(document), storedAt: document.storedAt };
}
