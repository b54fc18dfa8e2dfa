import { afterAll, expect } from 'vitest';
import { takeLeakedLines } from './redaction.ts';

// A setup file: it fails a test file whose services have logged a token, a secret or the query of a URL.
afterAll(() => {
  expect(takeLeakedLines(), 'lines of the log that hold a secret').toEqual([]);
});
