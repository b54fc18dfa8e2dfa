import type { TokenOwner } from '../../domain/account.ts';
import { invalidField, ridNotFound } from '../../domain/errors.ts';
import { integerInRange, MAX_BULK_RIDS } from '../../domain/limits.ts';
import type { StoredResult } from '../../domain/result.ts';
import { isRid } from '../../domain/rid.ts';
import type { ResultScope, ResultStore } from '../../store/store.ts';

const DEFAULT_PAGE = 1_000;
const MAX_PAGE = 10_000;
/** Bytes of pages in one bulk reply. */
const MAX_BULK_BYTES = 16 * 1024 * 1024;

/** Reading and removing stored results. Results of the other token do not exist for the caller. */
export interface Storage {
  /** By `rid`, or the newest of a pushed URL. Throws `not_found` until it is stored. */
  get(owner: TokenOwner, rid: string, url: string): Promise<StoredResult>;
  /** The bytes of a result's page; 0 when there is none. */
  pageBytes(owner: TokenOwner, rid: string): Promise<number>;
  /**
   * The results that one reply holds, in the requested order: of those that exist as many as fit,
   * but at least one.
   */
  select(owner: TokenOwner, rids: readonly string[]): Promise<BulkSelection>;
  /** The results that exist, in the requested order. */
  getMany(owner: TokenOwner, rids: readonly string[]): Promise<StoredResult[]>;
  /** Removes results. Returns the `rid`s of those that existed. */
  remove(owner: TokenOwner, rids: readonly string[]): Promise<Set<string>>;
  /** A page of `rid`s, and the cursor of the next page. */
  rids(
    owner: TokenOwner,
    page: {
      readonly limit: number | undefined;
      readonly order: 'asc' | 'desc';
      readonly cursor: string | undefined;
    },
  ): Promise<{ readonly rids: string[]; readonly cursor: string | undefined }>;
  count(owner: TokenOwner): Promise<number>;
}

/** The part of a bulk read that one reply holds. */
export interface BulkSelection {
  readonly rids: readonly string[];
  /** Bytes of their pages together. */
  readonly bytes: number;
  /** The `rid`s that the next call should request. */
  readonly deferred: readonly string[];
}

/** Makes the storage use cases. */
export function createStorage(deps: { readonly results: ResultStore }): Storage {
  const { results } = deps;
  const toScope = (owner: TokenOwner): ResultScope => ({
    accountId: owner.account.accountId,
    tokenType: owner.tokenType,
  });

  /**
   * Pending removals by scope. A read that comes after a removal was called waits for it, so that it
   * does not return what is being removed.
   */
  const removals = new Map<string, Promise<unknown>>();
  const toKey = (scope: ResultScope): string => `${scope.accountId}/${scope.tokenType}`;

  async function readable(owner: TokenOwner): Promise<ResultScope> {
    const scope = toScope(owner);
    const under = removals.size === 0 ? undefined : removals.get(toKey(scope));
    if (under !== undefined) await under;
    return scope;
  }

  async function remove(scope: ResultScope, rids: readonly string[]): Promise<Set<string>> {
    const key = toKey(scope);
    const removal = results.remove(scope, rids);
    const all = Promise.allSettled([removals.get(key), removal]);
    removals.set(key, all);
    await all;
    if (removals.get(key) === all) removals.delete(key);
    return removal;
  }

  return {
    async get(owner, rid, url) {
      if (rid === '' && url === '') {
        throw invalidField('rid', 'The rid parameter (or url) is missing.', 'missing_rid');
      }
      const scope = await readable(owner);
      const found =
        rid === ''
          ? await results.newestByUrl(scope, url)
          : isRid(rid)
            ? await results.get(scope, rid)
            : undefined;
      if (found !== undefined) return found;
      throw ridNotFound('result', rid === '' ? url : rid);
    },

    async pageBytes(owner, rid) {
      if (!isRid(rid)) return 0;
      return (await results.sizes(await readable(owner), [rid])).get(rid) ?? 0;
    },

    async select(owner, rids) {
      const wanted = validRids(rids);
      const sizes = await results.sizes(await readable(owner), wanted);
      const chosen: string[] = [];
      const deferred: string[] = [];
      let bytes = 0;
      for (const rid of wanted) {
        const size = sizes.get(rid);
        if (size === undefined) continue;
        // The results keep the requested order, so those after a deferred one are deferred, too.
        if (deferred.length > 0 || (chosen.length > 0 && bytes + size > MAX_BULK_BYTES)) {
          deferred.push(rid);
        } else {
          chosen.push(rid);
          bytes += size;
        }
      }
      return { rids: chosen, bytes, deferred };
    },

    async getMany(owner, rids) {
      return rids.length === 0 ? [] : results.getMany(await readable(owner), validRids(rids));
    },

    async remove(owner, rids) {
      const wanted = validRids(rids);
      return wanted.length === 0 ? new Set() : remove(toScope(owner), wanted);
    },

    async rids(owner, page) {
      const limit = integerInRange('limit', page.limit ?? DEFAULT_PAGE, 1, MAX_PAGE);
      const { order, cursor } = page;
      const from = cursor === undefined || cursor === '' ? {} : { cursor };
      return results.rids(await readable(owner), { limit, order, ...from });
    },

    count: async (owner) => results.count(await readable(owner)),
  };
}

function validRids(rids: readonly string[]): string[] {
  if (rids.length < 1 || rids.length > MAX_BULK_RIDS) {
    throw invalidField('rids', `rids must hold 1 to ${MAX_BULK_RIDS} RIDs.`);
  }
  return [...new Set(rids)].filter(isRid);
}
