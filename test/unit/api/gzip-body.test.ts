import { brotliCompressSync, gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { gzipBody } from '../../../src/api/gzip-body.ts';
import type { CodedBody } from '../../../src/domain/body-coding.ts';

const short = Buffer.from('<p>a page</p>'.repeat(500));
const long = Buffer.from(Array.from({ length: 40_000 }, (_, n) => `${n * 7_919} `).join(''));
const empty = Buffer.alloc(2_000_000);

test.each<[string, CodedBody['coding'], (page: Buffer) => Buffer, Buffer]>([
  ['short, in gzip', 'gzip', gzipSync, short],
  ['short, in zstd', 'zstd', zstdCompressSync, short],
  ['short, in br', 'br', brotliCompressSync, short],
  ['long, in zstd', 'zstd', zstdCompressSync, long],
  ['long, in br', 'br', brotliCompressSync, long],
  // Some bytes that decode to megabytes.
  ['long, and few bytes in zstd', 'zstd', zstdCompressSync, empty],
])('a page becomes gzip: %s', async (_name, coding, code, page) => {
  const packed = await gzipBody({ coding, bytes: code(page) });
  expect(gunzipSync(packed).equals(page)).toBe(true);
});

test('a short page keeps no other memory than its bytes', async () => {
  const { buffer, byteLength } = await gzipBody({ coding: 'zstd', bytes: zstdCompressSync(short) });
  expect(buffer.byteLength).toBe(byteLength);
});

test('what does not decode is refused, and no bytes stay so', async () => {
  const broken = gzipBody({ coding: 'zstd', bytes: Buffer.from('this is not zstd') });
  await expect(broken).rejects.toThrow(/zstd|frame|prefix/i);
  const none = new Uint8Array(0);
  expect(await gzipBody({ coding: 'br', bytes: none })).toBe(none);
});
