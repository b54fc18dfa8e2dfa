import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { pushUrls } from '../../../src/client/push-urls.ts';
import { stopAt } from '../../../src/client/stop-at.ts';

test('the signal ends a loop over an idle source, and is what the loop throws', async () => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const idle = Promise.withResolvers<void>();
  async function* source() {
    stopping.abort(new Error('stopped'));
    await idle.promise;
    yield 'a';
  }
  const pusher = { pushBatch: async () => Promise.reject(new Error('not called')) };
  const pushing = stopAt(signal, pushUrls(pusher, 'shop', source(), { signal }));
  await expect(pushing.next()).rejects.toBe(signal.reason);
  idle.resolve();
});

test('an aborted signal is thrown in place of what the loop makes of it', async () => {
  const stopping = new AbortController();
  async function* loop() {
    yield 1;
    await wait(60_000, undefined, { signal: stopping.signal });
  }
  const stopped = stopAt(stopping.signal, loop());
  expect(await stopped.next()).toEqual({ value: 1, done: false });
  stopping.abort('enough');
  await expect(stopped.next()).rejects.toBe('enough');
});

test('a source that ends or is left ends as in any loop', async () => {
  const stopping = new AbortController();
  let left = 0;
  const source = {
    [Symbol.iterator]: () => ({
      next: () => ({ value: 'http://a.example/', done: false }),
      return: () => {
        left += 1;
        return { value: undefined, done: true as const };
      },
    }),
  };
  const pusher = { pushBatch: async () => ({ results: [{ rid: 'a' }] }) as never };
  const { signal } = stopping;
  const options = { batchSize: 1, concurrency: 1, signal };
  for await (const { rid } of stopAt(signal, pushUrls(pusher, 'shop', source, options))) {
    expect(rid).toBe('a');
    break;
  }
  expect(left).toBe(1);
});
