import type { Db } from 'mongodb';
import { describe } from 'vitest';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { lendAgain } from '../../support/lend-again.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { storeContract } from './store-contract.ts';

describe.skipIf(mongodbUri === '')('the store on MongoDB', () => {
  // With its indexes, which take most of the time that opening a store in a new database takes.
  const lend = lendAgain(
    async () => ({ ...testDatabase(), db: undefined as Db | undefined }),
    async ({ db }) => {
      const collections = (await db?.collections()) ?? [];
      const data = collections.filter(({ collectionName }) => collectionName !== 'meta');
      await Promise.all(data.map((collection) => collection.deleteMany({})));
    },
  );
  storeContract('MongoDB', async () => {
    const database = await lend();
    const { uri } = database.resource;
    const open = async () => {
      const opened = await openMongoStore({ uri, logger: silentLogger });
      database.resource.db = opened.db;
      return opened;
    };
    let current = await open();
    return {
      store: current.store,
      async reopen() {
        await current.store.close();
        current = await open();
        return current.store;
      },
      async [Symbol.asyncDispose]() {
        await database[Symbol.asyncDispose]();
        await current.store.close();
      },
    };
  });
});
