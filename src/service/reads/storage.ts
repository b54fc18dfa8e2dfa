import { scopeOf, type TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import { invalidField, ridNotFound } from '../../domain/errors.ts';
import { integerInRange, MAX_BULK_RIDS } from '../../domain/limits.ts';
import type { StoredResult } from '../../domain/result.ts';
import { isRid } from '../../domain/rid.ts';
import type { ResultStore } from '../../store/store.ts';

const DEFAULT_PAGE = 1_000;
const MAX_PAGE = 10_000;
/** Bytes of pages in one bulk reply. */
const MAX_BULK_BYTES = 16 * 1024 * 1024;
/** How long results are held for a call that ended without saying how, as with its process. */
const HOLD_MS = 600_000;

/** Reading and removing stored results. Results of the other token do not exist for the caller. */
export interface Storage {
  /** By `rid`, or the newest of a pushed URL. Throws `not_found` until it is stored. */
  get(owner: TokenOwner, rid: string, url: string): Promise<StoredResult>;
  /** The bytes of a result's page; 0 without a page. */
  pageBytes(owner: TokenOwner, rid: string): Promise<number>;
  /**
   * The results that one reply holds, in the requested order: of those that exist as many as fit,
   * but at least one. `holds` hides them from every other call until they are removed or released,
   * for ten minutes at most; those that another call holds do not exist.
   */
  select(
    owner: TokenOwner,
    rids: readonly string[],
    options?: { readonly holds: boolean },
  ): Promise<BulkSelection>;
  /** Shows results again that `select` holds. */
  release(owner: TokenOwner, rids: readonly string[]): Promise<void>;
  /** The results that exist, in the requested order. */
  getMany(owner: TokenOwner, rids: readonly string[]): Promise<StoredResult[]>;
  /** Removes results. Returns the `rid`s of those that existed. */
  remove(owner: TokenOwner, rids: readonly string[]): Promise<Set<string>>;
  /** A page of `rid`s, and the cursor of the next page; undefined for a page without any, behind the last. */
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
export function createStorage(deps: {
  readonly results: ResultStore;
  readonly clock: Clock;
}): Storage {
  const { results, clock } = deps;
  return {
    async get(owner, rid, givenUrl) {
      // As a push trims it.
      const url = givenUrl.trim();
      if (rid === '' && url === '') {
        throw invalidField('rid', 'The rid parameter (or url) is missing.', 'missing_rid');
      }
      const scope = scopeOf(owner);
      const found =
        rid === ''
          ? await results.newest(scope, url)
          : isRid(rid)
            ? await results.get(scope, rid)
            : undefined;
      if (found !== undefined) return found;
      throw rid === '' ? ridNotFound('result', url, 'url') : ridNotFound('result', rid);
    },

    async pageBytes(owner, rid) {
      if (!isRid(rid)) return 0;
      return (await results.sizes(scopeOf(owner), [rid])).get(rid) ?? 0;
    },

    async select(owner, rids, { holds } = { holds: false }) {
      const wanted = validRids(rids);
      const scope = scopeOf(owner);
      const sizes = await results.sizes(scope, wanted);
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
      if (!holds || chosen.length === 0) return { rids: chosen, bytes, deferred };
      const until = new Date(clock.now().getTime() + HOLD_MS);
      const held = await results.hold(scope, chosen, until);
      return { rids: chosen.filter((rid) => held.has(rid)), bytes, deferred };
    },

    release: (owner, rids) => results.release(scopeOf(owner), rids),

    async getMany(owner, rids) {
      return rids.length === 0 ? [] : results.getMany(scopeOf(owner), validRids(rids));
    },

    async remove(owner, rids) {
      const wanted = validRids(rids);
      return wanted.length === 0 ? new Set() : results.remove(scopeOf(owner), wanted);
    },

    async rids(owner, page) {
      const limit = integerInRange('limit', page.limit ?? DEFAULT_PAGE, 1, MAX_PAGE);
      const { order, cursor } = page;
      const from = cursor === undefined || cursor === '' ? {} : { cursor };
      return results.rids(scopeOf(owner), { limit, order, ...from });
    },

    count: async (owner) => results.count(scopeOf(owner)),
  };
}

function validRids(rids: readonly string[]): string[] {
  if (rids.length < 1 || rids.length > MAX_BULK_RIDS) {
    throw invalidField('rids', `rids must hold 1 to ${MAX_BULK_RIDS} RIDs.`);
  }
  return [...new Set(rids)].filter(isRid);
}
