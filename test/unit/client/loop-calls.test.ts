import { Code, ConnectError, type UnaryRequest } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { StorageService } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { createLoopCall } from '../../../src/client/loop-calls.ts';
import { createRetries, limitAttempts } from '../../../src/client/retries.ts';

const lost = new ConnectError('lost', Code.Unavailable);

test('a service that was there once may be lost for the patience', async () => {
  const { signal } = new AbortController();
  const callService = createLoopCall(600_000, signal);
  await expect(callService(() => Promise.reject(lost))).rejects.toBe(lost);
  expect(await callService(async () => 'first')).toBe('first');
  let calls = 0;
  const second = callService(async () => {
    calls += 1;
    if (calls < 3) throw lost;
    return 'second';
  });
  expect(await second).toBe('second');
  const refused = new ConnectError('refused', Code.NotFound);
  await expect(callService(() => Promise.reject(refused))).rejects.toBe(refused);
});

test('a call whose service stays lost ends with the patience', async () => {
  const callService = createLoopCall(100, new AbortController().signal);
  await callService(async () => undefined);
  await expect(callService(() => Promise.reject(lost))).rejects.toBe(lost);
});

test('an attempt that gets no answer in its time is repeated', async () => {
  let attempts = 0;
  const send = createRetries({ firstDelayMs: 1 })(async ({ signal }) => {
    attempts += 1;
    if (attempts > 1) return 'answer' as never;
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  });
  const request = {
    stream: false,
    method: StorageService.method.bulkGetResults,
    message: { autoDelete: false },
    signal: new AbortController().signal,
  };
  const values = limitAttempts(20);
  const answer = await send({ ...request, contextValues: values } as unknown as UnaryRequest);
  expect(answer).toBe('answer');
});
