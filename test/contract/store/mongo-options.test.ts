import { describe, expect, test } from 'vitest';
import { withoutOurs } from '../../../src/store/mongo/client-options.ts';
import { openMongoStore, requireTransactions } from '../../../src/store/mongo/mongo-store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';

describe('a connection string', () => {
  test('keeps what is about the way to the database, and loses what the store decides', () => {
    const hosts = 'mongodb://user:p%3Fss@a.example:1,b.example:2/name';
    const kept = 'replicaSet=rs0&tls=true';
    const lost = 'readPreference=secondary&readPreferenceTags=dc:ny&maxStalenessSeconds=120&W=1';
    expect(withoutOurs(`${hosts}?${lost}&${kept}&maxpoolsize=1000`)).toBe(`${hosts}?${kept}`);
    expect(withoutOurs(`${hosts}?${lost}`)).toBe(hosts);
    expect(withoutOurs(hosts)).toBe(hosts);
  });
});

describe('a server', () => {
  test('that is no member of a replica set is refused, with what makes it one', async () => {
    const saying = (reply: object) => ({ command: async () => ({ ok: 1, ...reply }) });
    await expect(requireTransactions(saying({ isWritablePrimary: true }))).rejects.toThrow(
      /mongod --replSet rs0.*rs\.initiate\(\)/,
    );
    await requireTransactions(saying({ setName: 'rs0' }));
    await requireTransactions(saying({ msg: 'isdbgrid' }));
  });
});

describe.skipIf(mongodbUri === '')('the store on MongoDB', () => {
  test('reads from the primary, writes to a majority and waits for neither for ever, whatever the connection string says', async () => {
    await using database = testDatabase();
    const uri = new URL(database.uri);
    const given = {
      readPreference: 'secondaryPreferred',
      readConcernLevel: 'majority',
      w: '1',
      journal: 'false',
      wtimeoutMS: '0',
      retryWrites: 'false',
      retryReads: 'false',
      maxPoolSize: '1000',
      waitQueueTimeoutMS: '0',
      socketTimeoutMS: '0',
    };
    for (const [name, value] of Object.entries(given)) uri.searchParams.set(name, value);
    const { store, db } = await openMongoStore({ uri: uri.href, logger: silentLogger });
    const { options } = db.client;
    await store.close();
    expect(options.readPreference.mode).toBe('primary');
    expect(options.readConcern?.level).toBe('local');
    expect(options.writeConcern).toMatchObject({
      w: 'majority',
      journal: true,
      wtimeoutMS: 10_000,
    });
    expect(options).toMatchObject({ retryWrites: true, retryReads: true, maxPoolSize: 50 });
    expect(options).toMatchObject({ waitQueueTimeoutMS: 10_000, socketTimeoutMS: 60_000 });
  });
});
