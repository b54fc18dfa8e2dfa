import { expect, test } from 'vitest';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { type Implementation, toMethods } from '../../../src/api/method.ts';

const implementation: Implementation<typeof PushService> = {
  push: async (request) => ({ rid: request.url }),
  pushBatch: async () => ({ results: [] }),
  async *readSitemap() {},
  async *pushAgain() {},
  pushStream: async function* (requests) {
    for await (const request of requests) yield { sequence: request.sequence };
  },
  crawl: () => ({ cbStatus: 200 }),
};

test('a row for each method, in the order of the service', () => {
  const methods = toMethods(PushService, implementation);
  expect(methods.map((method) => [method.desc.name, method.kind])).toEqual([
    ['Push', 'unary'],
    ['PushBatch', 'unary'],
    ['PushStream', 'bidi_streaming'],
    ['PushAgain', 'server_streaming'],
    ['ReadSitemap', 'server_streaming'],
    ['Crawl', 'unary'],
  ]);
});

test('handlers are checked against the generated types', () => {
  const wrong: Implementation<typeof PushService> = {
    ...implementation,
    // @ts-expect-error rid is a string
    push: async () => ({ rid: 1 }),
  };
  expect(toMethods(PushService, wrong)).toHaveLength(6);
});

test('a missing handler stops the start', () => {
  const { push: _push, ...rest } = implementation;
  expect(() => toMethods(PushService, rest as Implementation<typeof PushService>)).toThrow(
    'queuedcrawler.v1.PushService/Push has no handler',
  );
});
