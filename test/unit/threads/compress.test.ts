import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Content } from '../../../src/domain/result-fields.ts';
import { type BodyTask, createBodyQueue } from '../../../src/threads/body-queue.ts';
import { compressSmall } from '../../../src/threads/compress.ts';
import { largeBodies } from '../../../src/threads/large-bodies.ts';
import { createNoise } from '../../support/noise.ts';

const claimant = { accountId: 'account' };
const noise = createNoise(7);
const incompressible = (length: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length }, () => noise.int(256));
const contentOf = (body: Uint8Array): Content => ({ contentType: 'text/html', body });

const DECODERS = { gzip: gunzipSync, zstd: zstdDecompressSync };
const CODINGS = ['gzip', 'zstd'] as const;

const SMALL: readonly (readonly [string, Uint8Array])[] = [
  ['nothing', new Uint8Array(0)],
  ['one byte', Uint8Array.of(7)],
  ['a short text', Buffer.from('<p>text</p>'.repeat(900))],
  ['a part of a longer buffer', Buffer.from('<p>text</p>'.repeat(900)).subarray(11, 5_000)],
  ['64 KiB that do not compress', incompressible(65_536)],
];

test.each(CODINGS.flatMap((coding) => SMALL.map(([what, body]) => ({ what, coding, body }))))(
  'what is compressed with $coding is $what again, in memory of its own',
  ({ coding, body }) => {
    // One compressor takes all small bodies; what it had before must not show.
    compressSmall(incompressible(3_000), coding);
    const packed = compressSmall(body, coding);
    expect(Buffer.compare(DECODERS[coding](packed), body)).toBe(0);
    expect(packed.buffer.byteLength).toBe(packed.byteLength);
  },
);

test.each(CODINGS)(
  'large bodies, and parts of larger memory, may come at once (%s)',
  async (coding) => {
    const memory = incompressible(400_000);
    const bodies = [memory.subarray(10, 200_000), memory.subarray(100_000), incompressible(70_000)];
    const copies = bodies.map((body) => Buffer.from(body));
    const all = await Promise.all(
      bodies.map((body) => largeBodies.pack(contentOf(body), coding, claimant)),
    );
    const again = all.map(({ body, packed }) => [Buffer.from(body), DECODERS[coding](packed)]);
    expect(copies.map((copy, n) => again[n]?.map((each) => each.equals(copy)))).toEqual(
      copies.map(() => [true, true]),
    );
  },
);

const toPack = (id: number, accountId: string, body: Uint8Array): BodyTask => ({
  id,
  claimant: { accountId },
  work: { kind: 'pack', content: contentOf(body), coding: 'gzip' },
});

/** Takes steps until nothing is left. */
function finish(queue: ReturnType<typeof createBodyQueue>) {
  const ended: { id: number; afterSteps: number; unpacked: number }[] = [];
  for (let steps = 1; queue.isBusy; steps += 1) {
    const done = queue.step();
    if (done === undefined) continue;
    if (done.answer.kind !== 'packed') throw new Error(done.answer.kind);
    const unpacked = gunzipSync(done.answer.result.packed).byteLength;
    ended.push({ id: done.id, afterSteps: steps, unpacked });
  }
  return ended;
}

test('a page of one account waits for no more than steps of the large ones of others', () => {
  const queue = createBodyQueue();
  for (let id = 1; id <= 3; id++) queue.add(toPack(id, 'large', incompressible(1_000_000)));
  queue.step();
  queue.add(toPack(4, 'small', incompressible(130_000)));
  const ended = finish(queue);
  expect(ended.map(({ id }) => id)).toEqual([4, 1, 2, 3]);
  expect(ended[0]?.afterSteps).toBeLessThan(10);
});

test('of hundreds of accounts each has its turn', () => {
  const queue = createBodyQueue();
  const body = incompressible(100_000);
  for (let id = 1; id <= 300; id++) queue.add(toPack(id, `account-${id}`, body));
  const ended = finish(queue);
  expect(ended.map(({ id }) => id)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1));
  expect(new Set(ended.map(({ unpacked }) => unpacked))).toEqual(new Set([body.byteLength]));
});
