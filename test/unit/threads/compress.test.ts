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
  const before = Uint8Array.from(body);
  // One compressor takes all small bodies; what it had before must not show.
  await compress(incompressible(3_000));
  const { packed, body: returned } = await compress(body);
  expect(Buffer.compare(gunzipSync(packed), before)).toBe(0);
  expect(Buffer.compare(returned, before)).toBe(0);
  expect(packed.buffer.byteLength).toBe(packed.byteLength);
});

test('large bodies, and parts of larger memory, may come at once', async () => {
  const memory = incompressible(400_000);
  const bodies = [memory.subarray(10, 200_000), memory.subarray(100_000), incompressible(70_000)];
  const copies = bodies.map((body) => Buffer.from(body));
  const all = await Promise.all(bodies.map(compress));
  const again = all.map(({ packed }) => gunzipSync(packed));
  expect(copies.map((copy, n) => again[n]?.equals(copy))).toEqual([true, true, true]);
});
