import { setImmediate as nextTurn } from 'node:timers/promises';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { type BodySinkDeps, createBodySink } from '../../../src/net/body-sink.ts';
import type { Room } from '../../../src/net/http-client.ts';
import { eventually } from '../../support/eventually.ts';
import { createNoise } from '../../support/noise.ts';

const TEXT = Buffer.from('a line of text\n'.repeat(5_000));

/** A sink, what its source is told, and a promise of its end. */
function open(deps: Partial<BodySinkDeps> = {}) {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  ended.catch(() => undefined);
  const calls: string[] = [];
  const source = { pause: () => calls.push('pause'), resume: () => calls.push('resume') };
  const sink = createBodySink({
    maxBytes: 1_000_000,
    room: undefined,
    onComplete: resolve,
    onError: reject,
    ...deps,
  });
  return { sink, source, calls, ended };
}

test('a body without an encoding is kept as it arrives', async () => {
  const { sink, source, ended } = open();
  sink.start([], source);
  for (const at of [0, 30_000, 60_000]) sink.write(TEXT.subarray(at, at + 30_000));
  sink.end();
  await ended;
  expect(Buffer.from(sink.take()).equals(TEXT)).toBe(true);
});

test('a read of the connection is freed when the next one has come, a part of one is not', async () => {
  const { sink, source, ended } = open();
  sink.start([], source, true);
  const reads = [1, 2, 3].map((value) => new Uint8Array(65_536).fill(value));
  const [whole, halved, last] = reads as [Uint8Array, Uint8Array, Uint8Array];
  for (const piece of [whole, halved.subarray(0, 9_000), halved.subarray(9_000), last]) {
    sink.write(piece);
  }
  expect(reads.map((read) => read.byteLength)).toEqual([0, 65_536, 65_536]);
  sink.end();
  await ended;
  const body = Buffer.concat([1, 2, 3].map((value) => Buffer.alloc(65_536, value)));
  expect(Buffer.from(sink.take()).equals(body)).toBe(true);
});

test('reads that streams share are not freed', async () => {
  const { sink, source, ended } = open();
  sink.start([], source);
  const reads = [new Uint8Array(65_536), new Uint8Array(65_536)];
  for (const read of reads) sink.write(read);
  sink.end();
  await ended;
  expect(reads.map((read) => read.byteLength)).toEqual([65_536, 65_536]);
});

test('an encoded body is decoded, and bytes behind its end are dropped', async () => {
  const { sink, source, ended } = open();
  sink.start([['content-encoding', 'gzip']], source);
  const packed = gzipSync(TEXT);
  for (const byte of packed) sink.write(Uint8Array.of(byte));
  sink.write(Buffer.from('\0\0\0'));
  sink.end();
  await ended;
  expect(Buffer.from(sink.take()).equals(TEXT)).toBe(true);
});

test.each([
  ['as it arrives', [], TEXT],
  ['when it is decoded', [['content-encoding', 'gzip']], gzipSync(TEXT)],
] as const)('a body that is too large %s ends with body_too_large', async (_, headers, body) => {
  const { sink, source, ended } = open({ maxBytes: TEXT.length - 1 });
  sink.start(headers, source);
  sink.write(body);
  sink.end();
  await expect(ended).rejects.toMatchObject({ code: 'body_too_large' });
});

test('a body that is cut short does not decode', async () => {
  const { sink, source, ended } = open();
  sink.start([['content-encoding', 'gzip']], source);
  sink.write(gzipSync(TEXT).subarray(0, 40));
  sink.end();
  await expect(ended).rejects.toMatchObject({ code: 'decoding_failed' });
});

test('more than two encodings are refused', () => {
  const { sink, source } = open();
  const start = () => sink.start([['content-encoding', 'gzip, br, zstd']], source);
  expect(start).toThrow(expect.objectContaining({ code: 'too_many_encodings' }));
});

test.each([
  ['the length that the response announces', [['content-length', '50000']], 50_000],
  ['the limit when it announces more', [['content-length', '5000000']], 1_000_000],
  ['the limit when it announces nothing', [], 1_000_000],
  ['the limit when it is encoded in two ways', [['content-encoding', 'gzip, gzip']], 1_000_000],
] as const)('memory beyond the first room is asked for once, for %s', async (_, headers, asked) => {
  const granted = Promise.withResolvers<void>();
  const grown: number[] = [];
  let roomBytes = 10_000;
  const room: Room = {
    get bytes() {
      return roomBytes;
    },
    async grow(bytes) {
      grown.push(bytes);
      await granted.promise;
      roomBytes = bytes;
    },
    reset: () => undefined,
  };
  const { sink, source, calls, ended } = open({ room });
  sink.start(headers, source);
  const isEncoded = headers.some(([name]) => name === 'content-encoding');
  const body = isEncoded ? gzipSync(gzipSync(TEXT)) : TEXT.subarray(0, 50_000);
  sink.write(body.subarray(0, body.length - 10));
  await eventually(() => expect(sink.isWaitingForRoom).toBe(true));
  expect([calls, grown]).toEqual([['pause'], [asked]]);
  granted.resolve();
  await eventually(() => expect(calls).toEqual(['pause', 'resume']));
  sink.write(body.subarray(body.length - 10));
  sink.end();
  await ended;
  expect([sink.isWaitingForRoom, grown]).toEqual([false, [asked]]);
});

test.each([
  ['without an encoding', [['content-length', '50000']], TEXT.subarray(0, 50_000)],
  ['with two', [['content-encoding', 'gzip, gzip']], gzipSync(gzipSync(TEXT))],
] as const)(
  'a body %s that ends while it waits for memory is complete once it has that',
  async (_, headers, body) => {
    const granted = Promise.withResolvers<void>();
    let isComplete = false;
    const room: Room = { bytes: 10_000, grow: () => granted.promise, reset: () => undefined };
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const onComplete = (): void => {
      isComplete = true;
      resolve();
    };
    const { sink, source } = open({ room, onComplete });
    sink.start(headers, source);
    sink.write(body);
    await eventually(() => expect(sink.isWaitingForRoom).toBe(true));
    // As HTTP/2 does with what has come before the pause.
    sink.end();
    await nextTurn();
    expect(isComplete).toBe(false);
    granted.resolve();
    await ended;
    const whole = headers[0][0] === 'content-length' ? body : TEXT;
    expect(Buffer.from(sink.take()).equals(whole)).toBe(true);
  },
);

/** A room that has 10,000 bytes and grants what is asked for at once. */
function grantingRoom() {
  const calls: (number | 'reset')[] = [];
  const room = {
    bytes: 10_000,
    async grow(bytes: number) {
      calls.push(bytes);
      room.bytes = bytes;
    },
    reset() {
      calls.push('reset');
      room.bytes = 10_000;
    },
  };
  return { room, calls };
}

/** Sends a body in pieces and waits for its end. */
async function receive(coding: string, body: Uint8Array, deps: Partial<BodySinkDeps> = {}) {
  const { sink, source, ended } = open(deps);
  sink.start([['content-encoding', coding]], source);
  for (let at = 0; at < body.length; at += 7_000) sink.write(body.subarray(at, at + 7_000));
  sink.end();
  await ended;
  return sink;
}

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const)('a short body in %s is decoded at once and kept as it came', async (coding, code) => {
  const { room, calls } = grantingRoom();
  const packed = code(TEXT);
  const sink = await receive(coding, packed, { room });
  expect(Buffer.from(sink.take()).equals(TEXT)).toBe(true);
  expect(sink.coded?.coding).toBe(coding);
  expect(Buffer.from(sink.coded?.bytes ?? '').equals(packed)).toBe(true);
  expect(calls).toEqual([512 * 1_024]);
});

test('a short body that becomes long is decoded as it comes, with memory for all of it', async () => {
  const { room, calls } = grantingRoom();
  const long = Buffer.alloc(900_000, 'a line of text\n');
  const sink = await receive('gzip', gzipSync(long), { room });
  expect(Buffer.from(sink.take()).equals(long)).toBe(true);
  expect(sink.coded).toBeUndefined();
  expect(calls).toEqual([524_288, 'reset', 1_000_000]);
});

test('a long body is decoded as it comes', async () => {
  const noise = createNoise(3);
  const long = Buffer.from(Uint8Array.from({ length: 200_000 }, () => noise.int(256)));
  const sink = await receive('gzip', gzipSync(long));
  expect(Buffer.from(sink.take()).equals(long)).toBe(true);
  expect(sink.coded).toBeUndefined();
});

test('a body that is longer coded than decoded is not kept as it came', async () => {
  const short = Buffer.from('<p>');
  expect((await receive('gzip', gzipSync(short))).coded).toBeUndefined();
});

/** 2 MB that a decoder of gzip takes for nothing: its parts are empty. */
const NOTHING = Buffer.concat([
  Buffer.from('1f8b0800000000000003', 'hex'),
  Buffer.alloc(2_000_000, Buffer.from('000000ffff', 'hex')),
]);

test.each([
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const)(
  'a decoder of %s has its memory before it decodes, whatever comes of that',
  async (coding, code) => {
    const granted = Promise.withResolvers<void>();
    const grown: number[] = [];
    const grow = (bytes: number): Promise<void> => {
      grown.push(bytes);
      return granted.promise;
    };
    const room: Room = { bytes: 10_000, grow, reset: () => undefined };
    const { sink, source, calls, ended } = open({ room });
    sink.start([['content-encoding', `gzip, ${coding}`]], source);
    expect([sink.isWaitingForRoom, calls, grown]).toEqual([true, ['pause'], [1_000_000]]);
    sink.write(code(NOTHING));
    sink.end();
    await nextTurn();
    granted.resolve();
    // The first stage decodes to more than a body may have.
    await expect(ended).rejects.toMatchObject({ code: 'body_too_large' });
  },
);

test.each([
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const)('a body in gzip and %s is decoded once there is memory', async (coding, code) => {
  const granted = Promise.withResolvers<void>();
  const room: Room = { bytes: 10_000, grow: () => granted.promise, reset: () => undefined };
  const { sink, source, calls, ended } = open({ room });
  sink.start([['content-encoding', `gzip, ${coding}`]], source);
  const body = code(gzipSync(TEXT));
  sink.write(body.subarray(0, 50));
  sink.write(body.subarray(50, 60));
  granted.resolve();
  await eventually(() => expect(calls).toEqual(['pause', 'resume']));
  sink.write(body.subarray(60));
  sink.end();
  await ended;
  expect(Buffer.from(sink.take()).equals(TEXT)).toBe(true);
});

test('a long body in br is decoded once there is memory for all of it', async () => {
  const { room, calls } = grantingRoom();
  const noise = createNoise(3);
  const long = Buffer.from(Uint8Array.from({ length: 200_000 }, () => noise.int(256)));
  const sink = await receive('br', brotliCompressSync(long), { room });
  expect(Buffer.from(sink.take()).equals(long)).toBe(true);
  expect(calls).toEqual([1_000_000]);
});
