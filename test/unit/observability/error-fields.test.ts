import { expect, test } from 'vitest';
import { errorFields } from '../../../src/observability/error-fields.ts';

test.each([
  // As the driver of MongoDB wraps it.
  [
    ['unavailable', 'connect refused', 'connect refused', 'refused'],
    'unavailable: connect refused',
  ],
  [['a task failed', 'no room'], 'a task failed: no room'],
  [['alone'], 'alone'],
  // Errors of several addresses have no message of their own.
  [['unavailable', '', 'refused'], 'unavailable: refused'],
])('of causes %j the log has %s', (messages, text) => {
  const error = messages.reduceRight<Error | undefined>(
    (cause, message) => new Error(message, { cause }),
    undefined,
  );
  expect(errorFields(error)).toMatchObject({ type: 'Error', message: text });
  expect(errorFields(error)).toHaveProperty('stack');
});

test('an error that is among its own causes ends, and what is no error stays as it is', () => {
  const error = new Error('round');
  error.cause = error;
  expect(errorFields(error)).toMatchObject({ message: 'round' });
  expect(errorFields('text')).toBe('text');
});
