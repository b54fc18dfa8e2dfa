import { once } from 'node:events';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createZstdDecoder } from '../../../src/net/zstd-frames.ts';
import { createNoise } from '../../support/noise.ts';

const TEXT = Buffer.from('<p>a line of text</p>\n'.repeat(400));
const NOISE = Buffer.concat(Array.from({ length: 30 }, (_, n) => createNoise(n + 1).bytes(30_000)));
const ZEROS = Buffer.alloc(300_000);
const unsized = (bytes: Buffer): Buffer =>
  zstdCompressSync(bytes, {
    params: { [constants.ZSTD_c_contentSizeFlag]: 0, [constants.ZSTD_c_checksumFlag]: 1 },
  });
const skippable = (bytes: number): Buffer => {
  const frame = Buffer.alloc(8 + bytes, 1);
  frame.writeUInt32LE(0x184d2a53, 0);
  frame.writeUInt32LE(bytes, 4);
  return frame;
};

async function decode(data: Buffer, pieceBytes: number): Promise<Buffer> {
  const decoder = createZstdDecoder({});
  const decoded: Buffer[] = [];
  decoder.on('data', (piece: Buffer) => decoded.push(piece));
  const ended = once(decoder, 'end');
  for (let at = 0; at < data.length; at += pieceBytes) {
    decoder.write(data.subarray(at, at + pieceBytes));
  }
  decoder.end();
  await ended;
  return Buffer.concat(decoded);
}

const BODIES: readonly (readonly [string, readonly Buffer[], Buffer])[] = [
  ['one frame', [zstdCompressSync(TEXT)], TEXT],
  ['two frames', [zstdCompressSync(TEXT), zstdCompressSync(NOISE)], Buffer.concat([TEXT, NOISE])],
  [
    'frames with a checksum and no length',
    [unsized(TEXT), unsized(ZEROS)],
    Buffer.concat([TEXT, ZEROS]),
  ],
  ['empty frames', [zstdCompressSync(''), zstdCompressSync(TEXT), zstdCompressSync('')], TEXT],
  [
    'frames without content',
    [skippable(0), zstdCompressSync(TEXT), skippable(70_000), zstdCompressSync(TEXT), skippable(3)],
    Buffer.concat([TEXT, TEXT]),
  ],
  ['something behind its frames', [zstdCompressSync(NOISE), Buffer.from('more')], NOISE],
  ['two bytes behind its frames', [zstdCompressSync(TEXT), Buffer.from('mo')], TEXT],
];

test.each(
  BODIES.flatMap(([what, parts, decoded]) =>
    [5, 1_000, 65_536, 10_000_000].map((bytes) => ({ what, parts, decoded, bytes })),
  ),
)('data of $what is decoded, $bytes bytes at a time', async ({ parts, decoded, bytes }) => {
  expect((await decode(Buffer.concat(parts), bytes)).equals(decoded)).toBe(true);
});

test('hundreds of frames of all lengths are decoded', async () => {
  const contents = Array.from({ length: 300 }, (_, n) => NOISE.subarray(n * 7, n * 7 + n * n));
  const data = Buffer.concat(contents.map((content) => zstdCompressSync(content)));
  expect((await decode(data, 4_093)).equals(Buffer.concat(contents))).toBe(true);
});

test.each([
  ['is something else', Buffer.from('<p>not coded at all')],
  ['is two bytes of something else', Buffer.from('ab')],
  ['is cut short', zstdCompressSync(NOISE).subarray(0, -5)],
  [
    'is cut short in its second frame',
    Buffer.concat([zstdCompressSync(TEXT), zstdCompressSync(NOISE).subarray(0, -5)]),
  ],
  ['has a broken block', zstdCompressSync(TEXT).fill(0xff, 9)],
  [
    'has more frames than any server sends',
    Buffer.concat(Array<Buffer>(20_001).fill(skippable(0))),
  ],
])('data that %s does not decode', async (_, data) => {
  await expect(decode(data, 1_000)).rejects.toThrow();
});

test('one frame is decoded as Node decodes it, whatever pieces it comes in', async () => {
  for (let seed = 1; seed < 60; seed += 1) {
    const content = createNoise(seed).bytes(200_000);
    const data = zstdCompressSync(content);
    expect((await decode(data, 1 + seed * 97)).equals(zstdDecompressSync(data))).toBe(true);
  }
});
