import { brotliCompressSync, deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { codingOf, decodeWhole } from '../../../src/net/decode-whole.ts';
import { createNoise } from '../../support/noise.ts';

const TEXT = Buffer.from('<p>a line of text</p>\n'.repeat(4_000));
const MAX_BYTES = 512 * 1_024;
const CODERS = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync };
const CODINGS = ['gzip', 'br', 'zstd'] as const;

test.each(CODINGS)('a complete body in %s is decoded', (coding) => {
  const coded = CODERS[coding](TEXT);
  expect(Buffer.from(decodeWhole(coding, coded, MAX_BYTES) ?? '').equals(TEXT)).toBe(true);
});

/** Bodies that are left to the decoder that takes them as they come. */
const OTHERS: readonly (readonly [string, (coded: Buffer) => Buffer])[] = [
  ['is cut short', (coded) => coded.subarray(0, -5)],
  ['is followed by other bytes', (coded) => Buffer.concat([coded, Buffer.from('more')])],
  // The last eight bytes look like the right ones.
  ['is followed by its own end', (coded) => Buffer.concat([coded, coded.subarray(-8)])],
  ['is nothing', () => Buffer.alloc(0)],
  ['is something else', () => Buffer.from('<p>not coded at all, whatever the header says</p>')],
];

test.each(CODINGS.flatMap((coding) => OTHERS.map(([what, change]) => ({ coding, what, change }))))(
  'a body in $coding that $what is not',
  ({ coding, change }) => {
    expect(decodeWhole(coding, change(CODERS[coding](TEXT)), MAX_BYTES)).toBeUndefined();
  },
);

test.each(CODINGS)('a body in %s that decodes to more than it may is not', (coding) => {
  const bomb = CODERS[coding](Buffer.alloc(2 * MAX_BYTES));
  expect(decodeWhole(coding, bomb, MAX_BYTES)).toBeUndefined();
});

test('gzip of several members is not: clients differ in what they make of it', () => {
  const empty = gzipSync('');
  for (const coded of [
    Buffer.concat([gzipSync(TEXT), gzipSync(TEXT)]),
    Buffer.concat([empty, gzipSync(TEXT)]),
    Buffer.concat([gzipSync(TEXT), empty]),
  ]) {
    expect(decodeWhole('gzip', coded, MAX_BYTES)).toBeUndefined();
  }
});

test('gzip whose checksum or length is wrong is not', () => {
  for (const at of [-8, -4]) {
    const coded = Buffer.from(gzipSync(TEXT));
    coded[coded.length + at] = (coded[coded.length + at] ?? 0) ^ 1;
    expect(decodeWhole('gzip', coded, MAX_BYTES)).toBeUndefined();
  }
});

test('gzip with a name and a checksum of its header is decoded', () => {
  const header = Buffer.from([0x1f, 0x8b, 8, 0x0a, 0, 0, 0, 0, 0, 3, 0x61, 0, 0x12, 0x34]);
  const trailer = gzipSync(TEXT).subarray(-8);
  const coded = Buffer.concat([header, deflateRawSync(TEXT), trailer]);
  expect(Buffer.from(decodeWhole('gzip', coded, MAX_BYTES) ?? '').equals(TEXT)).toBe(true);
});

test('random bytes never throw', () => {
  const noise = createNoise(11);
  for (let n = 0; n < 2_000; n += 1) {
    const coding = noise.pick(CODINGS);
    const coded = Buffer.from(CODERS[coding](TEXT.subarray(0, 500)));
    coded[noise.int(coded.length)] = noise.int(256);
    const decoded = decodeWhole(coding, noise.int(2) === 0 ? coded : noise.bytes(200), 10_000);
    expect(decoded === undefined || decoded.byteLength <= 10_000).toBe(true);
  }
});

test.each([
  [['gzip'], 'gzip'],
  [['x-gzip'], 'gzip'],
  [['br'], 'br'],
  [['zstd'], 'zstd'],
  [['deflate'], undefined],
  [['gzip', 'gzip'], undefined],
])('the coding of %j is %s', (encodings, coding) => {
  expect(codingOf(encodings)).toBe(coding);
});
