import { MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { type OneUpdate, updateEach } from '../../../src/store/mongo/update-each.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';

interface Item {
  readonly _id: string;
  readonly state: string;
  readonly attempt: number;
  readonly note?: string;
  readonly old?: number;
  readonly log: readonly { readonly text: string; readonly at: Date }[];
}

const AT = new Date('2026-01-02T03:04:05.678Z');
const idOf = (n: number): string => `item-${n}`;

/** Ends item `n`, which must be running in its first attempt, in a way of its own. */
function endOf(n: number): OneUpdate<Item> {
  return {
    filter: { _id: idOf(n), state: 'running', attempt: 1 },
    update: {
      $set: { state: 'ended', ...(n % 2 === 0 ? { note: `$state of ${n}` } : {}) },
      $unset: { old: 1 },
      $push: { log: { $each: [{ text: `$log ${n}`, at: AT }], $slice: -2 } },
    },
  };
}

function endedItem(n: number, log: Item['log']): Item {
  const note = n % 2 === 0 ? { note: `$state of ${n}` } : {};
  const own = { text: `$log ${n}`, at: AT };
  return { _id: idOf(n), state: 'ended', attempt: 1, ...note, log: [...log, own].slice(-2) };
}

describe.skipIf(mongodbUri === '')('on MongoDB', () => {
  for (const count of [3, 40, 200]) {
    test(`${count} documents get what is meant for each, whatever it looks like`, async () => {
      await using items = await openItems();
      const before = items.make(count, (n) => ({ log: manyTexts(n % 4) }));
      await items.collection.insertMany(before);
      const updates = before.map((_, n) => endOf(n));
      expect(await updateEach(items.collection, updates)).toBe(count);
      const expected = before.map(({ log }, n) => endedItem(n, log));
      expect(await items.read()).toEqual(expected);
    });
  }

  test('documents that are in another state stay as they are, and the count says how many', async () => {
    await using items = await openItems();
    const isOther = (n: number): boolean => n % 5 === 0;
    const before = items.make(50, (n) => (isOther(n) ? { attempt: 2 } : {}));
    await items.collection.insertMany(before);
    const absent = endOf(1_000);
    const matched = await updateEach(items.collection, [...before.map((_, n) => endOf(n)), absent]);
    expect(matched).toBe(40);
    const expected = before.map((item, n) => (isOther(n) ? item : endedItem(n, item.log)));
    expect(await items.read()).toEqual(expected);
  });

  test('of two updates of one document one is done', async () => {
    await using items = await openItems();
    const before = items.make(30);
    await items.collection.insertMany(before);
    const again: OneUpdate<Item> = {
      filter: { _id: idOf(7), state: 'running', attempt: 1 },
      update: { $set: { state: 'lost' }, $unset: { old: 1 } },
    };
    const updates = [...before.map((_, n) => endOf(n)), endOf(8), again];
    expect(await updateEach(items.collection, updates)).toBe(30);
    const { state } = (await items.collection.findOne({ _id: idOf(7) })) ?? {};
    expect(['ended', 'lost']).toContain(state);
    const { log } = (await items.collection.findOne({ _id: idOf(8) })) ?? {};
    expect(log).toHaveLength(1);
  });

  test('what a table cannot hold is done as well: sums, fields of fields, and pipelines', async () => {
    await using items = await openItems();
    const before = items.make(60);
    await items.collection.insertMany(before);
    const updates = before.map(({ _id }, n): OneUpdate<Item> => {
      const filter = { _id, attempt: 1 };
      if (n < 20) return { filter, update: { $inc: { attempt: n } } };
      if (n < 40) return { filter, update: { $set: { 'inner.number': n } } };
      return { filter, update: [{ $set: { old: { $add: ['$old', n] } } }] };
    });
    expect(await updateEach(items.collection, updates)).toBe(60);
    const after = await items.read();
    expect(after[3]).toMatchObject({ attempt: 4 });
    expect(after[30]).toMatchObject({ attempt: 1, inner: { number: 30 } });
    expect(after[50]).toMatchObject({ attempt: 1, old: 100 });
  });
});

function manyTexts(count: number): Item['log'] {
  return Array.from({ length: count }, (_, n) => ({ text: `before ${n}`, at: AT }));
}

/** A collection of its own, whose items are in order of their number. */
async function openItems() {
  const database = testDatabase();
  const client = await MongoClient.connect(database.uri);
  const collection = client.db().collection<Item>('items');
  const numberOf = ({ _id }: Item): number => Number(_id.slice('item-'.length));
  return {
    collection,
    make: (count: number, more: (n: number) => Partial<Item> = () => ({})): Item[] =>
      Array.from({ length: count }, (_, n) => {
        const item = { _id: idOf(n), state: 'running', attempt: 1, old: n, log: [] };
        return { ...item, ...more(n) };
      }),
    read: async (): Promise<Item[]> =>
      (await collection.find().toArray()).toSorted((a, b) => numberOf(a) - numberOf(b)),
    async [Symbol.asyncDispose]() {
      await client.close();
      await database[Symbol.asyncDispose]();
    },
  };
}
