import { expect, test } from 'vitest';
import type { QueuedJob } from '../../../src/domain/job.ts';
import { FAILURES, type FailureReason } from '../../../src/domain/status.ts';
import { createCrawlJobs } from '../../../src/service/crawls/crawl-job.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

const job = (retry: number): QueuedJob =>
  ({
    rid: '69f0c0de0123456789abcdef',
    crawlerId: '0123456789abcdef01234567',
    url: 'https://example.com/',
    method: 'GET',
    parameters: {},
    callbackHeaders: [],
    attempt: 1,
    retry,
    crashes: 0,
    createdAt: new Date(),
    firstTriedAt: new Date(),
  }) as unknown as QueuedJob;

/** How a crawl of a job ends that fails for that reason after the given number of retries. */
async function endOf(
  reason: FailureReason,
  retry: number,
  { waitMs, proxy }: { readonly waitMs?: number; readonly proxy?: string } = {},
) {
  const result = {
    failure: { reason, transient: FAILURES[reason].transient, retryAfterMs: waitMs },
    cbStatus: FAILURES[reason].cbStatus,
    originalStatus: 0,
    url: '',
    packedType: '',
    packed: new Uint8Array(0),
    details: {},
  };
  const jobs = createCrawlJobs({
    crawling: {
      crawl: async () =>
        ({
          result,
          held: undefined,
          proxyOpensAtMs: waitMs === undefined ? undefined : Date.now() + waitMs,
        }) as never,
      result: async () => ({ result, held: undefined }) as never,
    },
    ladders: { start: async () => undefined },
    budgets: { of: () => undefined },
    clock: { aheadMs: 0, now: () => new Date() },
    retentionDays: 1,
  });
  const crawler = { ...webhookCrawler(), proxy };
  return await jobs.crawl(job(retry), crawler, new AbortController().signal);
}

async function outcomeOf(reason: FailureReason, retry: number): Promise<string> {
  return (await endOf(reason, retry)).outcome.kind;
}

test.each([
  'memory_busy',
  'no_socket',
  'browser_busy',
  'browser_unavailable',
  'proxy_unavailable',
] as const)(
  'a job for which this service had no room (%s) is given back, however often, and its host has not failed',
  async (reason) => {
    const { outcome, answer } = await endOf(reason, 0);
    expect(outcome.kind).toBe('release');
    expect(answer).toBeUndefined();
    expect(await outcomeOf(reason, 109)).toBe('release');
  },
);

test.each([
  ['connection_failed', 100, 'retry'],
  // The page itself may be why: a few more tries, not a hundred.
  ['page_crashed', 4, 'retry'],
  ['page_crashed', 5, 'delivery'],
  ['engine_failed', 4, 'retry'],
  ['engine_failed', 5, 'delivery'],
  ['protocol_error', 9, 'retry'],
  ['protocol_error', 10, 'delivery'],
  ['decoding_failed', 9, 'retry'],
  ['decoding_failed', 10, 'delivery'],
  ['connection_failed', 109, 'retry'],
  ['page_too_heavy', 0, 'delivery'],
] as const)('a crawl that ended with %s after %i retries: %s', async (reason, retry, kind) => {
  expect(await outcomeOf(reason, retry)).toBe(kind);
});

test('a job that waits for the proxies of its crawler waits with its host, which learns of a change', async () => {
  const waitMs = 900_000;
  const soon = Date.now() + 100_000;
  const due = async (proxy?: string): Promise<number> => {
    const { outcome } = await endOf('proxy_unavailable', 0, {
      waitMs,
      ...(proxy ? { proxy } : {}),
    });
    return outcome.kind === 'release' ? (outcome.dueAt?.getTime() ?? 0) : 0;
  };
  const ofCrawler = await endOf('proxy_unavailable', 0, { waitMs, proxy: 'dead' });
  expect(ofCrawler.answer).toMatchObject({ kind: 'waits' });
  expect(await due('dead')).toBeLessThan(soon);
  // Nothing else holds up a URL that has named its own proxy.
  expect(await due()).toBeGreaterThan(soon);
});
