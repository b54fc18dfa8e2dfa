import type { TokenOwner } from '../domain/account.ts';
import { DomainError, invalidField } from '../domain/errors.ts';
import type { StoredResult } from '../domain/job.ts';
import { integerInRange, MAX_BULK_RIDS } from '../domain/limits.ts';
import { isRid } from '../domain/rid.ts';
import type { ResultScope, ResultStore } from '../store/store.ts';

const DEFAULT_PAGE = 1_000;
const MAX_PAGE = 10_000;

/** Reading and removing stored results. Results of the other token do not exist for the caller. */
export interface Storage {
  /** By `rid`, or the newest of a pushed URL. Throws `not_found` until it is stored. */
  get(owner: TokenOwner, rid: string, url: string): Promise<StoredResult>;
  /** Those that exist, in the order asked for; removed as well when `remove` is set. */
  getMany(owner: TokenOwner, rids: readonly string[], remove: boolean): Promise<StoredResult[]>;
  /** Which of them were removed. */
  remove(owner: TokenOwner, rids: readonly string[]): Promise<Set<string>>;
  /** A page of `rid`s and where the next one begins. */
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

/** Makes the storage use cases. */
export function createStorage(deps: { readonly results: ResultStore }): Storage {
  const { results } = deps;
  const scopeOf = (owner: TokenOwner): ResultScope => ({
    accountId: owner.account.accountId,
    tokenType: owner.tokenType,
  });

  return {
    async get(owner, rid, url) {
      if (rid === '' && url === '') {
        throw invalidField('rid', 'The rid parameter (or url) is missing.', 'missing_rid');
      }
      const scope = scopeOf(owner);
      const found =
        rid === ''
          ? await results.newestByUrl(scope, url)
          : isRid(rid)
            ? await results.get(scope, rid)
            : undefined;
      if (found !== undefined) return found;
      throw new DomainError('not_found', 'rid_not_found', 'RID not found', { field: 'rid' });
    },

    getMany: (owner, rids, remove) => results.getMany(scopeOf(owner), knownForm(rids), remove),

    async remove(owner, rids) {
      const wanted = knownForm(rids);
      return wanted.length === 0 ? new Set() : results.remove(scopeOf(owner), wanted);
    },

    rids(owner, page) {
      const limit = integerInRange('limit', page.limit ?? DEFAULT_PAGE, 1, MAX_PAGE);
      const { order, cursor } = page;
      const from = cursor === undefined || cursor === '' ? {} : { cursor };
      return results.rids(scopeOf(owner), { limit, order, ...from });
    },

    count: (owner) => results.count(scopeOf(owner)),
  };
}

function knownForm(rids: readonly string[]): string[] {
  if (rids.length < 1 || rids.length > MAX_BULK_RIDS) {
    throw invalidField('rids', `rids must hold 1 to ${MAX_BULK_RIDS} RIDs.`);
  }
  return [...new Set(rids)].filter(isRid);
}
