import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { compress } from '../../../src/threads/compress.ts';
import { createNoise } from '../../support/noise.ts';

const noise = createNoise(7);
const incompressible = (length: number): Uint8Array =>
  Uint8Array.from({ length }, () => noise.int(256));

test.each([
  ['nothing', new Uint8Array(0)],
  ['one byte', Uint8Array.of(7)],
  ['a short text', Buffer.from('<p>text</p>'.repeat(900))],
  ['a part of a longer buffer', Buffer.from('<p>text</p>'.repeat(900)).subarray(11, 5_000)],
  ['64 KiB that do not compress', incompressible(65_536)],
  ['a byte more', incompressible(65_537)],
])('what is compressed is %s again, in memory of its own', async (_, body) => {
  // One compressor takes all bodies; what it had before must not show.
  const others = await Promise.all([compress(incompressible(3_000)), compress(body)]);
  const packed = await compress(body);
  expect(Buffer.compare(gunzipSync(packed), body)).toBe(0);
  expect(others[1]).toEqual(packed);
  expect(packed.buffer.byteLength).toBe(packed.byteLength);
});
