import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { compress } from '../../../src/threads/compress.ts';
import { createPackQueue } from '../../../src/threads/pack-queue.ts';
import { createNoise } from '../../support/noise.ts';

const claimant = { accountId: 'account' };
const noise = createNoise(7);
const incompressible = (length: number): Uint8Array<ArrayBuffer> =>
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
  await compress(incompressible(3_000), claimant);
  const { packed, body: returned } = await compress(body, claimant);
  expect(Buffer.compare(gunzipSync(packed), before)).toBe(0);
  expect(Buffer.compare(returned, before)).toBe(0);
  expect(packed.buffer.byteLength).toBe(packed.byteLength);
});

test('large bodies, and parts of larger memory, may come at once', async () => {
  const memory = incompressible(400_000);
  const bodies = [memory.subarray(10, 200_000), memory.subarray(100_000), incompressible(70_000)];
  const copies = bodies.map((body) => Buffer.from(body));
  const all = await Promise.all(bodies.map((body) => compress(body, claimant)));
  const again = all.map(({ packed }) => gunzipSync(packed));
  expect(copies.map((copy, n) => again[n]?.equals(copy))).toEqual([true, true, true]);
});

test('a page of one account waits for no more than slices of the large ones of others', () => {
  const queue = createPackQueue();
  const add = (id: number, accountId: string, length: number): void =>
    queue.add({ id, claimant: { accountId }, body: incompressible(length), level: 3 });
  for (let id = 1; id <= 3; id++) add(id, 'large', 1_000_000);
  queue.step();
  add(4, 'small', 130_000);
  const order: number[] = [];
  let steps = 0;
  for (let firstAt = 0; queue.isBusy; steps += 1) {
    const packed = queue.step();
    if (packed === undefined) continue;
    order.push(packed.id);
    if (firstAt === 0) expect(steps).toBeLessThan(7);
    firstAt = steps;
  }
  expect(order).toEqual([4, 1, 2, 3]);
});

test('of hundreds of accounts each has its turn', () => {
  const queue = createPackQueue();
  const body = incompressible(200_000);
  for (let id = 1; id <= 300; id++) {
    queue.add({ id, claimant: { accountId: `account-${id}` }, body, level: 1 });
  }
  const done: number[] = [];
  while (queue.isBusy) {
    const packed = queue.step();
    if (packed === undefined) continue;
    done.push(packed.id);
    expect(gunzipSync(packed.packed).byteLength).toBe(body.byteLength);
  }
  expect(done).toEqual(Array.from({ length: 300 }, (_, n) => n + 1));
});
