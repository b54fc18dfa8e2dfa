import { constants, createZstdCompress, zstdCompressSync } from 'node:zlib';
import { expect, test, vi } from 'vitest';
import { createZstdFrames } from '../../../src/net/zstd-frames.ts';

const SKIPPABLE = Buffer.from('502a4d180400000001020304', 'hex');
const LONG = Buffer.from(Array.from({ length: 40_000 }, (_, n) => `line ${n * n}\n`).join(''));
const checked = (text: string | Buffer): Buffer =>
  zstdCompressSync(text, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
const EMPTY = Buffer.from('28b52ffd0058010000', 'hex');

/** What comes out when the bytes are written in pieces of this length. */
async function decode(bytes: Buffer, pieceBytes: number): Promise<string> {
  const decoder = createZstdFrames({});
  const out: Buffer[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  decoder.on('data', (chunk: Buffer) => out.push(chunk));
  decoder.on('end', resolve).on('error', reject);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    decoder.write(bytes.subarray(at, at + pieceBytes));
  }
  decoder.end();
  await promise;
  return Buffer.concat(out).toString();
}

const one = zstdCompressSync('one, ');
const two = checked('two');

test.each([
  ['one frame', [one], 'one, '],
  ['a frame with a checksum', [two], 'two'],
  ['two frames', [one, two], 'one, two'],
  ['a frame between two that are skipped', [SKIPPABLE, one, SKIPPABLE], 'one, '],
  ['a long frame and a short one', [checked(LONG), one], `${LONG.toString()}one, `],
  ['an empty frame first', [EMPTY, two], 'two'],
  ['bytes behind the last frame', [one, two, Buffer.from('no frame')], 'one, two'],
  ['few bytes behind the last frame', [one, Buffer.from([0x28, 0xb5])], 'one, '],
  [
    'repeated bytes',
    [zstdCompressSync(Buffer.alloc(300_000, 'a')), one],
    `${'a'.repeat(300_000)}one, `,
  ],
] as const)('%s', async (_, parts, text) => {
  const bytes = Buffer.concat(parts);
  expect(await decode(bytes, bytes.length)).toBe(text);
  expect(await decode(bytes, 7)).toBe(text);
  if (bytes.length < 100) expect(await decode(bytes, 1)).toBe(text);
});

test('a stream that is flushed is one frame', async () => {
  const coder = createZstdCompress();
  coder.write('one, ');
  const flushed = new Promise<void>((resolve) => coder.flush(resolve));
  await flushed;
  coder.end('two');
  expect(await decode(Buffer.concat(await coder.toArray()), 5)).toBe('one, two');
});

test.each([
  ['no zstd', Buffer.from('<html>page</html>')],
  ['a frame that is cut short', checked(LONG).subarray(0, -3)],
  ['a second frame that is cut short', Buffer.concat([one, two.subarray(0, -1)])],
  ['a block of a kind that there is not', Buffer.from('28b52ffd00580700000000', 'hex')],
])('%s does not decode', async (_, bytes) => {
  await expect(decode(bytes, bytes.length)).rejects.toThrow();
  await expect(decode(bytes, 5)).rejects.toThrow();
});

test('of more than 1,000 frames none is decoded any more', async () => {
  const frames = (count: number) => Buffer.concat(Array.from({ length: count }, () => EMPTY));
  expect(await decode(Buffer.concat([frames(999), two]), 16_384)).toBe('two');
  await expect(decode(frames(1_001), 16_384)).rejects.toMatchObject({ code: 'decoding_failed' });
});

test.each([
  ['empty blocks', Buffer.from([0, 0, 0]), 0],
  ['blocks of a byte', Buffer.from([8, 0, 0, 65]), 1],
])('a million %s are passed over, not taken one by one', async (_, block, length) => {
  const count = 1_000_000;
  const blocks = Buffer.alloc(count * block.length, block);
  const bytes = Buffer.concat([EMPTY.subarray(0, 6), blocks, EMPTY.subarray(-3), two]);
  const views = vi.spyOn(Buffer.prototype, 'subarray');
  try {
    expect((await decode(bytes, 65_536)).length).toBe(count * length + 'two'.length);
    // Each block that is taken by itself needs a view of its header.
    expect(views.mock.calls.length).toBeLessThan(count / 100);
  } finally {
    views.mockRestore();
  }
});
