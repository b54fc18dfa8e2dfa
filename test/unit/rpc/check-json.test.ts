import { type DescMessage, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import {
  ActOnMatchesRequestSchema,
  ListDeliveriesRequestSchema,
} from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import {
  CreateCrawlerRequestSchema,
  ReplayDeliveriesRequestSchema,
} from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  PushRequestSchema,
  PushStreamRequestSchema,
} from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { compileJsonCheck } from '../../../src/rpc/check-json.ts';

const VALUES: readonly JsonValue[] = [
  null,
  true,
  'true',
  0,
  -0,
  1,
  -1,
  1.5,
  1e3,
  1e21,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  2 ** 53 + 2,
  '5',
  ' 5',
  '5.0',
  '1e3',
  '',
  'x',
  'NaN',
  '18446744073709551616',
  'eA==',
  'e\u0000',
  '\ud800',
  '2026-01-31T12:00:00Z',
  '2026-01-31',
  '2026-13-31T12:00:00Z',
  '0000-01-01T00:00:00Z',
  [],
  [null],
  ['x'],
  [1],
  [{}],
  {},
  { a: 1 },
];

function isTaken(read: () => void): boolean {
  try {
    read();
    return true;
  } catch {
    return false;
  }
}

test.each<DescMessage>([
  CreateCrawlerRequestSchema,
  PushRequestSchema,
  PushStreamRequestSchema,
  ReplayDeliveriesRequestSchema,
  ListDeliveriesRequestSchema,
  ActOnMatchesRequestSchema,
])('takes the values of fields that the decoder takes: $name', (desc) => {
  for (const ignoreUnknownFields of [true, false]) {
    const check = compileJsonCheck(desc, { ignoreUnknownFields });
    // Numbers of enums, and elements that are refused by themselves, are more than the decoder knows.
    // It takes "" for a 64-bit number.
    const others = ['items', 'sequence'];
    const fields = desc.fields.filter((field) => !others.includes(field.name) && !field.enum);
    for (const field of fields) {
      for (const value of VALUES) {
        const json = { [field.jsonName]: structuredClone(value) };
        const taken = isTaken(() => fromJson(desc, json, { ignoreUnknownFields }));
        const text = `${field.name}: ${JSON.stringify(value)}`;
        expect([text, isTaken(() => check(json))]).toEqual([text, taken]);
      }
    }
  }
});

test('numbers in quotes are decimal', () => {
  const check = compileJsonCheck(CreateCrawlerRequestSchema, { ignoreUnknownFields: false });
  for (const concurrency of ['0x10', '0b1', '+5']) {
    expect(() => check({ concurrency })).toThrow('concurrency must be a whole number.');
  }
});

test('elements that are read apart are replaced, and their refusals say where they were', () => {
  const check = compileJsonCheck(PushStreamRequestSchema, { ignoreUnknownFields: true });
  const json = { items: [{ url: 'a' }, { url: 5 }, null] };
  const refused = check(json);
  expect(json).toEqual({ items: [{ url: 'a' }, {}, {}] });
  expect(refused).toMatchObject([
    { list: 'items', at: 1, refusal: { reason: 'invalid_url', field: 'url' } },
    { list: 'items', at: 2, refusal: { reason: 'invalid_items', field: 'items' } },
  ]);
});

test('a refusal quotes no more than 100 characters of an unknown name, and nothing of a value', () => {
  const check = compileJsonCheck(CreateCrawlerRequestSchema, { ignoreUnknownFields: false });
  expect(() => check({ ['x'.repeat(1_000)]: 1 })).toThrow(new RegExp(`"${'x'.repeat(100)}"`));
  expect(() => check({ concurrency: 'secret' })).toThrow('concurrency must be a whole number.');
});
