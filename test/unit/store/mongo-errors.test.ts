import { MongoError } from 'mongodb';
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

test('a fault of the program stays one', () => {
  const error = new TypeError('undefined is not a function');
  expect(toDomainError(error)).toBe(error);
});
