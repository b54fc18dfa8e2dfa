import { expect, test } from 'vitest';
import { isUnavailable } from '../../../src/domain/errors.ts';
import { toDomainError } from '../../../src/store/mongo/errors.ts';

test.each(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'])(
  'a socket that fails with %s, which the driver passes on as it is, means an unavailable database',
  (code) => {
    const error = Object.assign(new Error('This socket has been ended by the other party'), {
      code,
    });
    expect(isUnavailable(toDomainError(error))).toBe(true);
  },
);

test('a fault of the program stays one', () => {
  const error = new TypeError('undefined is not a function');
  expect(toDomainError(error)).toBe(error);
});
