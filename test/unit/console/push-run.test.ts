import { create } from '@bufbuild/protobuf';
import { afterAll, expect, test, vi } from 'vitest';
import { PushBatchResponseSchema } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { eventually } from '../../support/eventually.ts';

// What a browser has, as far as the module uses it.
vi.stubGlobal('addEventListener', () => undefined);
vi.stubGlobal('removeEventListener', () => undefined);
vi.stubGlobal('BroadcastChannel', EventTarget);
afterAll(() => vi.unstubAllGlobals());

const { runInto, startPush } = await import('../../../src/console/pages/crawler/push-run.ts');

test('what a repeated batch did not queue goes with another request_id', async () => {
  const sent: { readonly requestId: string; readonly urls: readonly (string | undefined)[] }[] = [];
  const answers = [
    () => Promise.reject(new TypeError('the answer is lost')),
    // The first call had queued one URL; the other was over the rate.
    () => [{ rid: 'one' }, { error: { code: 'request_id_used', retryAfterMs: 1 } }],
    () => [{ rid: 'two' }],
  ];
  const client = {
    async pushBatch({ requestId = '', items = [] }: { requestId?: string; items?: Item[] }) {
      sent.push({ requestId, urls: items.map(({ url }) => url) });
      return create(PushBatchResponseSchema, { results: (await answers.shift()?.()) ?? [] });
    },
  };
  startPush(client, 'shop', ['a', 'b'], {}, () => undefined);
  await eventually(() => expect(runInto('shop')?.state).toBe('ended'));
  expect(runInto('shop')?.done).toMatchObject([
    { url: 'a', rid: 'one', error: '' },
    { url: 'b', rid: 'two', error: '' },
  ]);
  expect(sent.map(({ urls }) => urls)).toEqual([['a', 'b'], ['a', 'b'], ['b']]);
  const [first, repeated, other] = sent.map(({ requestId }) => requestId);
  expect(repeated).toBe(first);
  expect(other).not.toBe(first);
});

interface Item {
  readonly url?: string;
}
