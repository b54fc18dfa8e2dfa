import { type Binary, MongoClient } from 'mongodb';
import { inject } from 'vitest';
import { createRid } from '../../src/domain/rid.ts';
import { createTransactions } from '../../src/store/mongo/transactions.ts';

/** Where the tests' MongoDB is; empty without one, and tests that need it are skipped. */
export const mongodbUri = inject('mongodbUri');

/** A database that nobody else has; dropped when disposed. */
export interface TestDatabase extends AsyncDisposable {
  readonly uri: string;
}

/** Names a database of its own on the tests' server. */
export function testDatabase(serverUri = mongodbUri): TestDatabase {
  const name = `test_${createRid(new Date())}`;
  const url = new URL(serverUri);
  url.pathname = `/${name}`;
  return {
    uri: url.href,
    async [Symbol.asyncDispose]() {
      await using client = new MongoClient(serverUri);
      await abortLeftOver(client, name);
      await client.db(name).dropDatabase();
    },
  };
}

/**
 * Aborts the transactions that killed processes have left open: the server keeps their locks, for a
 * minute or for good, and the database cannot be dropped before.
 */
async function abortLeftOver(client: MongoClient, name: string): Promise<void> {
  const parts = await client
    .db(name)
    .collection<{ session?: Binary; sessions?: Binary[] }>('counts')
    .find({}, { projection: { session: 1, sessions: 1 } })
    .toArray();
  const ids = parts.flatMap(({ session, sessions = [] }) => session ?? sessions);
  await createTransactions(() => client.startSession(), client.db('admin')).abort(ids);
}
