import type { Filter } from 'mongodb';
import type { Account } from '../../domain/account.ts';
import { defined } from '../../domain/defined.ts';
import { accountExists, accountHasCrawlers, tokenTaken } from '../../domain/errors.ts';
import type { AccountUsage } from '../../domain/quotas.ts';
import type { AccountStore } from '../store.ts';
import type { AccountIncrements } from './account-increments.ts';
import type { AccountDocument, Collections } from './collections.ts';
import { deleteOne } from './delete-batch.ts';
import { exists } from './find-ids.ts';
import { isDuplicate } from './mongo-errors.ts';

/** Accounts and their tokens. */
export function createAccounts(
  collections: Collections,
  increments: AccountIncrements,
): AccountStore {
  /** The totals of an account that was just read, with what this process has gathered. */
  function usageOf(document: AccountDocument): AccountUsage {
    const { crawlers, concurrency } = document;
    return { crawlers, concurrency, ...increments.read(document) };
  }

  /** The name, in its own case, that an account has. */
  async function takenName(name: string): Promise<string | undefined> {
    const document = await collections.accounts.findOne(
      { name: { $regex: `^${name.replaceAll('.', String.raw`\.`)}$`, $options: 'i' } },
      { projection: { name: 1 } },
    );
    return document?.name;
  }

  async function one(filter: Filter<AccountDocument>): Promise<Account | undefined> {
    const document = await collections.accounts.findOne(filter);
    return document === null ? undefined : toAccount(document);
  }

  return {
    async create(account) {
      const { normal, javascript } = account.tokenHashes;
      // Accounts of older versions have no `nameKey`; the index decides between those of today.
      const taken = await takenName(account.name);
      if (taken !== undefined) throw accountExists(taken);
      try {
        await collections.accounts.insertOne({
          _id: account.accountId,
          name: account.name,
          nameKey: account.name.toLowerCase(),
          email: account.email,
          normalHash: normal,
          javascriptHash: javascript,
          hashes: [normal, javascript],
          createdAt: account.createdAt,
          queued: 0,
          limits: account.limits,
          crawlers: 0,
          concurrency: 0,
          storedBytes: 0,
          queuedBytes: 0,
          over: false,
        });
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        const named = await takenName(account.name);
        throw named === undefined ? tokenTaken() : accountExists(named);
      }
    },

    async findByTokenHash(hash) {
      const document = await collections.accounts.findOne({ hashes: hash });
      if (document === null) return undefined;
      const usage = usageOf(document);
      increments.note(document._id, usage.queued);
      return {
        account: toAccount(document),
        tokenType: document.normalHash === hash ? 'normal' : 'javascript',
        usage: { ...usage, readAtMs: performance.now() },
      };
    },

    findByName: (name) => one({ name }),
    get: (accountId) => one({ _id: accountId }),

    async list({ limit, after = '' }) {
      const found = await collections.accounts
        .find({ name: { $gt: after } })
        .sort({ name: 1 })
        .limit(limit)
        .toArray();
      return found.map(toAccount);
    },

    async update(accountId, patch) {
      const { email, limits, tokenHashes: { normal, javascript } = {} } = patch;
      const fields = {
        ...(email === undefined ? {} : { email: { $literal: email } }),
        ...(limits === undefined ? {} : { limits: { $literal: limits } }),
        ...defined({ normalHash: normal, javascriptHash: javascript }),
      };
      try {
        const document = await collections.accounts.findOneAndUpdate(
          { _id: accountId },
          [{ $set: fields }, { $set: { hashes: ['$normalHash', '$javascriptHash'] } }],
          { returnDocument: 'after' },
        );
        return document === null ? undefined : toAccount(document);
      } catch (error) {
        if (isDuplicate(error)) throw tokenTaken();
        throw error;
      }
    },

    async remove(accountId, now) {
      if (await exists(collections.crawlers, { accountId })) throw accountHasCrawlers();
      if (!(await exists(collections.accounts, { _id: accountId }))) return false;
      // Before the account is removed: a crash in between must not leave its results behind.
      await collections.removedAccounts.updateOne(
        { _id: accountId },
        { $set: { removedAt: now } },
        { upsert: true },
      );
      const gone = await deleteOne(collections.accounts, accountId);
      await collections.cookieSessions.deleteMany({ accountId });
      await collections.proxyPools.deleteOne({ _id: accountId });
      return gone !== undefined;
    },

    async usage(accountId) {
      await increments.flush();
      const document = await collections.accounts.findOne({ _id: accountId });
      return document === null ? undefined : usageOf(document);
    },

    async full(defaultLimit) {
      await increments.flush();
      const limit = { $ifNull: ['$limits.storageBytes', defaultLimit] };
      const found = await collections.accounts
        .find(
          { $expr: { $and: [{ $gt: [limit, 0] }, { $gte: ['$storedBytes', limit] }] } },
          { projection: { storedBytes: 1, limits: 1 } },
        )
        .toArray();
      return found.map(({ _id, storedBytes, limits }) => {
        const { storageBytes = defaultLimit } = limits;
        return { accountId: _id, usedBytes: storedBytes, limitBytes: storageBytes };
      });
    },
  };
}

function toAccount(document: AccountDocument): Account {
  return {
    accountId: document._id,
    name: document.name,
    email: document.email,
    tokenHashes: { normal: document.normalHash, javascript: document.javascriptHash },
    limits: document.limits,
    createdAt: document.createdAt,
  };
}
