import { describe } from 'vitest';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { storeContract } from './store-contract.ts';

describe.skipIf(mongodbUri === '')('the store on MongoDB', () => {
  storeContract('MongoDB', async () => {
    const database = testDatabase();
    const open = () => openMongoStore({ uri: database.uri, logger: silentLogger });
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
