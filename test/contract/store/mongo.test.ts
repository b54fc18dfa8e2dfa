import { MongoClient } from 'mongodb';
import { describe } from 'vitest';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { lendAgain } from '../../support/lend-again.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { storeContract } from './store-contract.ts';

describe.skipIf(mongodbUri === '')('the store on MongoDB', () => {
  // With its indexes, which take most of the time that opening a store in a new database takes.
  const lend = lendAgain(
    async () => testDatabase(),
    async ({ uri }) => {
      await using client = await new MongoClient(uri).connect();
      const collections = await client.db().collections();
      const data = collections.filter(({ collectionName }) => collectionName !== 'meta');
      await Promise.all(data.map((collection) => collection.deleteMany({})));
    },
  );
  storeContract('MongoDB', async () => {
    const database = await lend();
    const { uri } = database.resource;
    const open = () => openMongoStore({ uri, logger: silentLogger });
    let current = await open();
    return {
      store: current.store,
      async reopen() {
        await current.store.close();
        current = await open();
        return current.store;
      },
      async [Symbol.asyncDispose]() {
        await current.store.close();
        await database[Symbol.asyncDispose]();
      },
    };
  });
});
