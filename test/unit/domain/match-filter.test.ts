import { expect, test } from 'vitest';
import { isMatch, type MatchFilter } from '../../../src/domain/match-filter.ts';

const ROW = {
  url: 'https://Shop.example:8443/P/42?sort=Up',
  batch: 'monday',
  reasons: [undefined, 'timeout'],
  cbStatus: 522,
  originalStatus: 0,
  at: new Date(1_000),
};

test.each<[filter: MatchFilter, isSelected: boolean]>([
  [{}, true],
  // A part of the URL, in any spelling.
  [{ urlContains: 'shop.EXAMPLE:8443/p/' }, true],
  [{ urlContains: '/p/43' }, false],
  // The host has its port, and is not a part of another one.
  [{ host: 'shop.example:8443' }, true],
  [{ host: 'shop.example' }, false],
  [{ batch: 'monday' }, true],
  [{ batch: 'mon' }, false],
  // Any of the reasons, and only whole ones.
  [{ reason: 'timeout' }, true],
  [{ reason: 'time' }, false],
  [{ cbStatus: 522 }, true],
  [{ cbStatus: 200 }, false],
  // 0 is a status: that of a site that was silent.
  [{ originalStatus: 0 }, true],
  [{ originalStatus: 500 }, false],
  // From a moment on, and before one.
  [{ from: new Date(1_000) }, true],
  [{ from: new Date(1_001) }, false],
  [{ to: new Date(1_000) }, false],
  [{ to: new Date(1_001) }, true],
  // All conditions together.
  [{ batch: 'monday', cbStatus: 200 }, false],
])('%o selects it: %s', (filter, isSelected) => {
  expect(isMatch(filter, ROW)).toBe(isSelected);
});

test('a job has no status, so a condition on one does not select it', () => {
  const job = { ...ROW, cbStatus: undefined, originalStatus: undefined };
  expect(isMatch({ cbStatus: 522 }, job)).toBe(false);
  expect(isMatch({ originalStatus: 0 }, job)).toBe(false);
});
