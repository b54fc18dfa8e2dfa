import { setTimeout as wait } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { PushBatchResponseSchema } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { type PushOptions, pushUrls } from '../../../src/client/push-urls.ts';

type Pusher = Parameters<typeof pushUrls>[0];
type Outcome = { rid?: string; error?: { code: string; retryAfterMs: number } };

/** A service that answers each URL by this. */
function pusherOf(answer: (url: string) => Outcome | Promise<Outcome>): Pusher {
  return {
    async pushBatch({ items = [] }) {
      const results = await Promise.all(items.map(async ({ url = '' }) => answer(url)));
      return create(PushBatchResponseSchema, { results });
    },
  };
}

/** The URLs that came with a `rid`, and what the loop threw. */
async function run(pusher: Pusher, urls: Parameters<typeof pushUrls>[2], options: PushOptions) {
  const accepted: unknown[] = [];
  try {
    for await (const { item, rid } of pushUrls(pusher, 'shop', urls, options)) {
      if (rid !== undefined) accepted.push(item);
    }
  } catch (error) {
    return { accepted, error };
  }
  return { accepted };
}

test('a source that throws takes nothing away of what was accepted before', async () => {
  const fault = new Error('bad line');
  async function* source() {
    yield* ['a', 'b', 'c', 'd', 'e'];
    throw fault;
  }
  const pusher = pusherOf((url) => ({ rid: `rid-${url}` }));
  const ended = await run(pusher, source(), { batchSize: 2 });
  expect(ended).toEqual({ accepted: ['a', 'b', 'c', 'd'], error: fault });
});

test('a batch that fails takes nothing away of what was accepted before and with it', async () => {
  const failure = new ConnectError('gone', Code.NotFound);
  const tried = new Map<string, number>();
  const pusher = pusherOf((url) => {
    const times = (tried.get(url) ?? 0) + 1;
    tried.set(url, times);
    // The second round of the first batch fails, and no batch continues without it.
    if (url === 'b' && times === 2) throw failure;
    const isFull = url === 'b' || url === 'd';
    return isFull ? { error: { code: 'rate_limited', retryAfterMs: 20 } } : { rid: `rid-${url}` };
  });
  const ended = await run(pusher, ['a', 'b', 'c', 'd'], { batchSize: 2 });
  expect(ended).toEqual({ accepted: ['a', 'c'], error: failure });
});

test('the time that the source takes is not in the patience', async () => {
  async function* source() {
    yield 'a';
    await wait(2_100);
    yield 'b';
  }
  let isFull = true;
  const pusher = pusherOf((url) => {
    if (url === 'a' || !isFull) return { rid: `rid-${url}` };
    isFull = false;
    return { error: { code: 'rate_limited', retryAfterMs: 20 } };
  });
  const ended = await run(pusher, source(), { batchSize: 1, patienceMs: 2_000 });
  expect(ended).toEqual({ accepted: ['a', 'b'] });
});
