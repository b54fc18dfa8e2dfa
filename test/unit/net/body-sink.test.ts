import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { type BodySinkDeps, createBodySink } from '../../../src/net/body-sink.ts';
import type { Room } from '../../../src/net/http-client.ts';

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
  ['the limit when it is encoded', [['content-encoding', 'gzip']], 1_000_000],
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
  const body = isEncoded ? gzipSync(TEXT) : TEXT.subarray(0, 50_000);
  sink.write(body.subarray(0, body.length - 10));
  await expect.poll(() => sink.isWaitingForRoom).toBe(true);
  expect([calls, grown]).toEqual([['pause'], [asked]]);
  granted.resolve();
  await expect.poll(() => calls).toEqual(['pause', 'resume']);
  sink.write(body.subarray(body.length - 10));
  sink.end();
  await ended;
  expect([sink.isWaitingForRoom, grown]).toEqual([false, [asked]]);
});
