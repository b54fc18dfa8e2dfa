import { setTimeout as wait } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { RetryInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { reconnect } from '../../../src/client/reconnect.ts';

/** What the service refuses for now. */
function refusal(): ConnectError {
  const value = create(RetryInfoSchema, { retryDelay: { seconds: 0n, nanos: 5_000_000 } });
  const details = [{ desc: RetryInfoSchema, value }];
  return new ConnectError('too many streams', Code.ResourceExhausted, undefined, details);
}

test('a stream that is refused for now is opened again', async () => {
  let opened = 0;
  async function* open() {
    opened += 1;
    if (opened < 3) throw refusal();
    yield 'message';
  }
  const messages: string[] = [];
  for await (const message of reconnect(open, {})) messages.push(message);
  expect(messages).toEqual(['message']);
});

test('a refusal without a delay, or for longer than the patience, ends the stream', async () => {
  async function read(failure: ConnectError, patienceMs: number): Promise<void> {
    let hasOpened = false;
    async function* open() {
      if (hasOpened) throw failure;
      hasOpened = true;
      yield 'message';
      throw failure;
    }
    for await (const _ of reconnect(open, { patienceMs }));
  }
  const full = new ConnectError('full', Code.ResourceExhausted);
  await expect(read(full, 600_000)).rejects.toThrow(full);
  await expect(read(refusal(), 300)).rejects.toThrow('too many streams');
});

test('the time that the reader takes is not in the patience', async () => {
  let opened = 0;
  async function* open() {
    opened += 1;
    yield opened;
    if (opened === 1) throw new ConnectError('lost', Code.Unavailable);
  }
  const messages: number[] = [];
  for await (const message of reconnect(open, { patienceMs: 100 })) {
    messages.push(message);
    if (message === 1) await wait(200);
  }
  expect(messages).toEqual([1, 2]);
});
