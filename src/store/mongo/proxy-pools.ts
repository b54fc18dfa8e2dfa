import type { ProxyPoolStore } from '../proxy-pool-store.ts';
import type { Collections } from './collections.ts';
import { exists, findIds } from './find-ids.ts';
import { isInserted } from './mongo-errors.ts';

/** Pools of proxies of accounts. */
export function createProxyPools({
  proxyPools,
  accounts,
}: Pick<Collections, 'proxyPools' | 'accounts'>): ProxyPoolStore {
  return {
    async read(accountId, known) {
      const found = await proxyPools.findOne({ _id: accountId, version: { $ne: known } });
      return found === null ? undefined : { version: found.version, sealed: found.sealed };
    },

    async replace(accountId, known, sealed) {
      const next = { version: known + 1, sealed };
      if (known > 0) {
        const { matchedCount } = await proxyPools.updateOne(
          { _id: accountId, version: known },
          { $set: next },
        );
        return matchedCount > 0;
      }
      if (!(await isInserted(proxyPools.insertOne({ _id: accountId, ...next })))) return false;
      // A removal deletes the account first, and then its pools.
      if (await exists(accounts, { _id: accountId })) return true;
      await proxyPools.deleteOne({ _id: accountId });
      return false;
    },

    owners: (limit) => findIds(proxyPools, {}, { sort: { _id: 1 }, limit }),
  };
}
