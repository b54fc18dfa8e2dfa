import { expect, test } from 'vitest';
import type { ResultDetails } from '../../../src/domain/result.ts';
import { detailsText, parseDetails } from '../../../src/store/stored-details.ts';

test.each<ResultDetails>([
  {},
  { failure: 'timeout' },
  { screenshotUrl: 'https://q.example/s', originalHeaders: { screenshot_url: 'x', failure: 'y' } },
  { screenshotFailed: 'not_drawn', originalHeaders: { original_server: 'nginx' } },
])('details are read as they were kept: %j', (details) => {
  expect(parseDetails(detailsText(details))).toEqual(details);
});

test.each<[kept: string, details: ResultDetails]>([
  ['{"failure":"timeout"}', { failure: 'timeout' }],
  ['{"screenshot_failed":"timeout"}', { screenshotFailed: 'timeout' }],
  [
    '{"screenshot_url":"s","original_set_cookie":"a=1","original_x":"y"}',
    { screenshotUrl: 's', originalHeaders: { set_cookie: 'a=1', x: 'y' } },
  ],
])('details of an earlier version are read, too: %s', (kept, details) => {
  expect(parseDetails(kept)).toEqual(details);
});
