import { type ClientSession, type Db, MongoError, MongoServerError } from 'mongodb';
import { expect, test } from 'vitest';
import { createTransactions } from '../../../src/store/mongo/transactions.ts';

/** Transactions whose commits end as `commits` say, one after the other; true is a success. */
function startTransactions(commits: readonly (Error | true)[]) {
  const left = [...commits];
  const session = {
    startTransaction: () => undefined,
    inTransaction: () => false,
    async commitTransaction() {
      const end = left.shift();
      if (end instanceof Error) throw end;
    },
    async [Symbol.asyncDispose]() {
      // Nothing is open.
    },
  };
  const transactions = createTransactions(
    () => session as unknown as ClientSession,
    {} as Pick<Db, 'command'>,
  );
  return { transactions, left };
}

// What the driver does when the socket of a commit fails.
const ofSocket = new TypeError('error.hasErrorLabel is not a function');

test('a commit in which the driver itself fails is sent again', async () => {
  const { transactions, left } = startTransactions([ofSocket, true]);
  expect(await transactions.run(async () => 'value')).toBe('value');
  expect([left, transactions.counts()]).toEqual([[], { committed: 1, aborted: 0 }]);
});

test('a commit that cannot be sent is an unavailable database, unless it is found to be done', async () => {
  const { transactions } = startTransactions(Array.from({ length: 20 }, () => ofSocket));
  await expect(transactions.run(async () => 'value')).rejects.toMatchObject({
    kind: 'unavailable',
    cause: ofSocket,
  });
  const done = { wasCommitted: async () => true };
  expect(await transactions.run(async () => 'value', done)).toBe('value');
});

test('a commit that the server refuses keeps the error of the driver', async () => {
  const refused = new MongoError('refused');
  const { transactions, left } = startTransactions([refused, true]);
  await expect(transactions.run(async () => 'value')).rejects.toBe(refused);
  expect(left).toEqual([true]);
});

test('a write that met another one is repeated with its transaction, also if the error has no label', async () => {
  const { transactions } = startTransactions([true]);
  let tries = 0;
  const value = await transactions.run(async () => {
    tries += 1;
    if (tries < 3) throw new MongoServerError({ code: 112, message: 'deadlock detected' });
    return 'value';
  });
  expect([value, tries, transactions.counts()]).toEqual(['value', 3, { committed: 1, aborted: 2 }]);
});
