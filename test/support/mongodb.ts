import { MongoClient } from 'mongodb';
import { inject } from 'vitest';
import { createRid } from '../../src/domain/rid.ts';

/** Where the tests' MongoDB is; empty when there is none, and what needs it is skipped. */
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
      const client = new MongoClient(serverUri);
      await client.db(name).dropDatabase();
      await client.close();
    },
  };
}
