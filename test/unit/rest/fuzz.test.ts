import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { CreateCrawlerRequestSchema } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  PushBatchRequestSchema,
  PushRequestSchema,
} from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { BulkGetResultsRequestSchema } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { compileQueryParameters } from '../../../src/rest/bind-parameters.ts';
import { GatewayError } from '../../../src/rest/gateway-error.ts';
import { parseQuery } from '../../../src/rest/query-string.ts';
import { type BindableExchange, compileRequestBinder } from '../../../src/rest/request-binder.ts';
import { compileMessageWriter } from '../../../src/rest/write-json.ts';
import { byLength } from '../../support/length.ts';

const schemas = [
  CreateCrawlerRequestSchema,
  PushRequestSchema,
  PushBatchRequestSchema,
  BulkGetResultsRequestSchema,
];

function exchangeOf(query: string, body: Uint8Array): BindableExchange {
  return { parameters: parseQuery(query), body: async () => body, maxFields: 4_096 };
}

const names = schemas.flatMap((schema) => [...compileQueryParameters(schema).keys()]);
const value = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('true', '1', '-0', '1e9', '%', '%ff', '+', '99999999999', 'html', ''),
);
const query = fc
  .array(fc.tuple(fc.oneof(fc.constantFrom(...names, '__proto__'), fc.string()), value))
  .map((pairs) => pairs.map(([name, text]) => `${name}=${text}`).join('&'));
const json = fc.oneof(
  fc.dictionary(
    fc.constantFrom('name', 'politeness', 'items', 'rids', 'delivery', 'concurrency', '__proto__'),
    fc.jsonValue(),
  ),
  fc.jsonValue(),
);
const body = fc.oneof(
  json.map((each) => Buffer.from(JSON.stringify(each))),
  fc.uint8Array(),
);

test('any query and body bind or are refused with a 4xx', async () => {
  const binders = schemas.flatMap((schema) =>
    ['', '*'].map((rule) => ({
      bind: compileRequestBinder(schema, rule, 'fuzz'),
      write: compileMessageWriter(schema),
    })),
  );
  await fc.assert(
    fc.asyncProperty(query, body, async (text, bytes) => {
      for (const { bind, write } of binders) {
        try {
          // What was bound must also be writable: no value of a wrong type got in.
          JSON.parse(write(await bind(exchangeOf(text, bytes))));
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error;
          expect([400, 422]).toContain(error.status);
        }
      }
    }),
    { numRuns: byLength(300, 1_500) },
  );
  expect({}).not.toHaveProperty('polluted');
});

test('what the writer writes, the binder reads back', async () => {
  const bind = compileRequestBinder(CreateCrawlerRequestSchema, '*', 'fuzz');
  const write = compileMessageWriter(CreateCrawlerRequestSchema);
  const crawler = fc.record(
    {
      name: fc.string({ unit: 'binary' }),
      callback_url: fc.string(),
      delivery: fc.constantFrom('webhook', 'storage'),
      concurrency: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map((each) => each + 0),
      politeness: fc.record({
        max_per_host: fc.nat(1e6),
        delay_ms: fc.nat(),
        robots_txt: fc.boolean(),
        hosts: fc.array(fc.record({ pattern: fc.string(), paused: fc.boolean() })),
        group: fc.string(),
      }),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(crawler, async (given) => {
      const request = await bind(exchangeOf('', Buffer.from(JSON.stringify(given))));
      expect(JSON.parse(write(request))).toEqual({ token: '', name: '', ...given });
    }),
    { numRuns: byLength(100, 300) },
  );
});
