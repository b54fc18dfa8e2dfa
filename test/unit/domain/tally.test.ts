import { expect, test } from 'vitest';
import { addDays, toHistoryDay } from '../../../src/domain/stats.ts';
import {
  type EndedJob,
  resultEnd,
  type Tally,
  tallyDelivery,
  tallyEnd,
} from '../../../src/domain/tally.ts';

const ok = { end: 'completed', cbStatus: 200, billed: true } as const;

test.each<[why: string, ended: EndedJob, tally: Tally]>([
  [
    'a page',
    ok,
    {
      counter: 'completed',
      day: ['success', 'billed'],
      cbStatus: 200,
      moments: ['crawl', 'success'],
    },
  ],
  // A target that answers 403 is a result like any other, but not billed.
  [
    'a page that is not billed',
    { ...ok, billed: false },
    { counter: 'completed', day: ['success'], cbStatus: 200, moments: ['crawl', 'success'] },
  ],
  [
    'a failure',
    { end: 'failed', cbStatus: 521, billed: false, failure: 'connection_failed' },
    {
      counter: 'failed',
      day: ['failed'],
      cbStatus: 521,
      moments: ['crawl'],
      failed: { kind: 'crawl', error: 'connection_failed' },
    },
  ],
  // Nothing was crawled, so the moment of the last crawl stays.
  [
    'a job that waited too long',
    { end: 'failed', cbStatus: 699, timedOut: true },
    { counter: 'failed', day: ['failed', 'timeouts'], cbStatus: 699 },
  ],
  ['a deletion', { end: 'deleted' }, { counter: 'deleted', day: ['deleted'] }],
  ['a purge', { end: 'purged' }, { counter: 'purged', day: ['purged'] }],
])('%s', (_why, ended, tally) => {
  expect(tallyEnd(ended)).toEqual(tally);
});

test.each([
  [200, 'completed'],
  [201, 'failed'],
  [520, 'failed'],
] as const)('a result with cb_status %i has %s', (cbStatus, end) => {
  expect(resultEnd(cbStatus)).toBe(end);
});

const failed = { kind: 'delivery', error: '' } as const;

test.each<[kind: Parameters<typeof tallyDelivery>[0]['kind'], billed: boolean, tally: Tally]>([
  ['delivered', false, { counter: 'delivered', day: ['deliveries'], moments: ['delivery'] }],
  [
    'delivered',
    true,
    { counter: 'delivered', day: ['deliveries', 'billed'], moments: ['delivery'] },
  ],
  ['retry', true, { day: ['deliveryFailures', 'billed'], failed }],
  ['failed', false, { day: ['deliveryFailures'], failed }],
  ['release', false, { day: [] }],
])('an attempt: %s, billed: %s', (kind, billed, tally) => {
  expect(tallyDelivery({ kind, billed })).toEqual(tally);
});

test('days add up, statuses one by one', () => {
  const sum = addDays([
    { pushed: 2, byCbStatus: { 200: 1 } },
    { pushed: 1, failed: 1, byCbStatus: { 200: 1, 521: 1 } },
    {},
  ]);
  expect(sum).toEqual({ pushed: 3, failed: 1, byCbStatus: { 200: 2, 521: 1 } });
  expect(toHistoryDay('2026-01-02', sum)).toEqual({
    date: '2026-01-02',
    pushed: 3,
    success: 0,
    failed: 1,
    deliveries: 0,
    deliveryFailures: 0,
    billed: 0,
    retries: 0,
    climbs: 0,
    proxyBytes: 0,
    timeouts: 0,
    deleted: 0,
    purged: 0,
    byCbStatus: { 200: 2, 521: 1 },
  });
});
