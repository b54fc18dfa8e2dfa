import { MongoError, MongoServerError } from 'mongodb';
import { expect, test } from 'vitest';
import { isUnavailable } from '../../../src/domain/errors.ts';
import { toDomainError } from '../../../src/store/mongo/mongo-errors.ts';

test.each(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'])(
  'a socket that fails with %s, which the driver passes on as it is, means an unavailable database',
  (code) => {
    const error = Object.assign(new Error('This socket has been ended by the other party'), {
      code,
    });
    expect(isUnavailable(toDomainError(error))).toBe(true);
  },
);

test('a call that waited for a connection of a replaced client means an unavailable database', () => {
  class PoolClosed extends MongoError {
    override get name() {
      return 'MongoPoolClosedError';
    }
  }
  expect(isUnavailable(toDomainError(new PoolClosed('closed connection pool')))).toBe(true);
});

test.each([
  ['its disk is full', 14_031, true],
  ['writes are blocked', 371, true],
  ['too many requests arrive', 462, true],
  ['an operation is not allowed', 13, false],
])('a server that refuses because %s', (_why, code, isExpected) => {
  const refused = new MongoServerError({ message: 'refused', code });
  expect(isUnavailable(toDomainError(refused))).toBe(isExpected);
});

test('a fault of the program stays one', () => {
  const error = new TypeError('undefined is not a function');
  expect(toDomainError(error)).toBe(error);
});
