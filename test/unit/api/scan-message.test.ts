import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  PushBatchRequestSchema,
  PushRequestSchema,
} from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { GetStatsResponseSchema } from '../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { GetResultResponseSchema } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { MessageFault, scanBinary, scanJson } from '../../../src/api/scan-message.ts';

const schemas = [
  PushRequestSchema,
  PushBatchRequestSchema,
  GetStatsResponseSchema,
  GetResultResponseSchema,
];
const batch = toBinary(
  PushBatchRequestSchema,
  create(PushBatchRequestSchema, {
    token: 't',
    items: [{ url: 'https://example.com/ü', parameters: { pageWait: 5 } }, { url: 'b' }],
  }),
);

describe('protobuf', () => {
  test('what is well formed passes', () => {
    scanBinary(PushBatchRequestSchema, batch, 20);
    const unknown = Uint8Array.of(0xf8, 0x07, 1, 0xf9, 0x07, 1, 2, 3, 4, 5, 6, 7, 8, 0xfb, 7, 8, 1);
    scanBinary(PushRequestSchema, Uint8Array.of(...unknown, 0xfc, 7), 20);
    scanBinary(
      GetStatsResponseSchema,
      toBinary(
        GetStatsResponseSchema,
        create(GetStatsResponseSchema, { history: [{ byCbStatus: { 200: 1n } }] }),
      ),
      20,
    );
  });

  test.each([
    ['cut short', [0x0a, 5, 1]],
    ['a length beyond everything', [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ['a varint without end', [0x08, ...Array.from({ length: 11 }, () => 0x80), 1]],
    ['field 0', [0x02, 0]],
    ['a wire type that does not exist', [0x0f]],
    ['a tag of more than 32 bits', [0xfd, 0x80, 0x80, 0x80, 0x10, 0, 0, 0, 0]],
    ['a tag in six bytes', [0xfd, 0x80, 0x80, 0x80, 0x81, 0x00, 0, 0, 0, 0]],
    ['a tag in six bytes, in a group', [0xfb, 7, 0xf8, 0x87, 0x80, 0x80, 0x80, 0, 1, 0xfc, 7]],
    ['the end of a group that did not begin', [0xfc, 0x07]],
    ['a group that does not end', [0xfb, 0x07]],
    ['text that is not UTF-8', [0x0a, 1, 0xff]],
    ['a number where there is a text', [0x08, 1]],
    ['groups too deep', Array.from({ length: 200 }, () => [0xfb, 0x07]).flat()],
  ])('%s is malformed', (_, bytes) => {
    expect(() => scanBinary(PushRequestSchema, Uint8Array.from(bytes), 1_000)).toThrow(
      expect.objectContaining({ reason: 'malformed_message' }),
    );
  });

  test('more fields than are taken: unknown ones, empty items, map entries', () => {
    const bytes = (part: readonly number[]) =>
      Uint8Array.from(Array.from({ length: 101 }, () => part).flat());
    for (const part of [
      [0x78, 0],
      [0x1a, 0],
      [0xfb, 7, 0xfc, 7],
    ]) {
      expect(() => scanBinary(PushBatchRequestSchema, bytes(part), 100)).toThrow(
        expect.objectContaining({ reason: 'too_many_fields' }),
      );
    }
  });

  test('what passes can be decoded', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.array(fc.tuple(fc.nat(batch.length - 1), fc.nat(255)), { maxLength: 4 }).map((changes) => {
        const changed = Uint8Array.from(batch);
        for (const [at, byte] of changes) changed[at] = byte;
        return changed;
      }),
    );
    fc.assert(
      fc.property(fc.constantFrom(...schemas), bytes, (schema, message) => {
        try {
          scanBinary(schema, message, 1_000);
        } catch (error) {
          if (error instanceof MessageFault) return;
          throw error;
        }
        fromBinary(schema, message);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe('JSON', () => {
  const text = (json: string) => Buffer.from(json);

  test('what is ordinary passes, brackets and quotes in texts included', () => {
    scanJson(text(JSON.stringify({ a: ['[[[[{{{{,,,,"\\', { b: [1, 2] }] })), 10);
    scanJson(text(JSON.stringify({ body: '1'.repeat(900), url: 'a1'.repeat(5_000) })), 10);
    scanJson(text('not JSON at all ]]]"'), 10);
  });

  test.each([
    ['nesting', '['.repeat(100), 'malformed_message'],
    ['elements', `[${'0,'.repeat(100)}0]`, 'too_many_fields'],
    ['objects', `[${'{}'.repeat(100)}]`, 'too_many_fields'],
    ['a number of a million digits', `{"sequence":" -${'7'.repeat(10_000)}"}`, 'malformed_message'],
  ])('too much %s', (_, json, reason) => {
    expect(() => scanJson(text(json), 50)).toThrow(expect.objectContaining({ reason }));
  });
});
