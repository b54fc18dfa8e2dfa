import { expect, test } from 'vitest';
import { keptRequestText, parseKeptRequest } from '../../../src/domain/kept-request.ts';
import { at, makeCrawler, makeJob } from '../../contract/store/store-harness.ts';

const crawler = makeCrawler('account');

test('of a plain URL nothing is kept', () => {
  expect(keptRequestText(makeJob(crawler))).toBeUndefined();
  expect(parseKeptRequest(undefined)).toEqual({});
});

test('everything that a push said is kept, bytes included', () => {
  const body = Uint8Array.from({ length: 256 }, (_, n) => n);
  const said = {
    method: 'POST' as const,
    body,
    contentType: 'application/octet-stream',
    parameters: { format: 'json' as const, get_headers: true },
    callbackHeaders: [['X-Token', 'a:b']] as const,
    priority: 0,
  };
  const job = makeJob(crawler, { ...said, notBefore: at(60_000), queueDeadline: at(180_000) });
  const kept = parseKeptRequest(keptRequestText(job));
  expect(kept).toEqual({ ...said, body: Buffer.from(body), queueTimeout: 2 });
});
