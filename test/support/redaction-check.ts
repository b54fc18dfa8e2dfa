import { afterAll, expect } from 'vitest';
import { leakedLines } from './redaction.ts';

// A setup file: it fails a test file whose services have logged a token, a secret or the query of a URL.
afterAll(() => {
  expect(leakedLines(), 'lines of the log that hold a secret').toEqual([]);
});
