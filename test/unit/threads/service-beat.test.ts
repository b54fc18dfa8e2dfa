import { setImmediate as nextTick } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { beatForThread, watchService } from '../../../src/threads/service-beat.ts';
import { createStateBuffer, threadState } from '../../../src/threads/thread-messages.ts';
import { eventually } from '../../support/eventually.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A service and a thread of it, whose timers run together. */
function startBoth() {
  const state = threadState(createStateBuffer());
  const stop = beatForThread(state);
  return { stop, ready: watchService(state) };
}

/** The clock advances, but no timer runs: the process is stopped. */
function sleep(ms: number): void {
  const awake = performance.now.bind(performance);
  vi.restoreAllMocks();
  const later = awake() - performance.now() + ms;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + later);
}

test('while the service is awake requests go out at once', async () => {
  const { ready } = startBoth();
  expect(ready(undefined)).toBeUndefined();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(ready(undefined)).toBeUndefined();
});

test('a request waits for a service that is busy, until it runs again', async () => {
  const { stop, ready } = startBoth();
  await vi.advanceTimersByTimeAsync(500);
  stop();
  await vi.advanceTimersByTimeAsync(600);
  expect(ready(undefined)).toBeInstanceOf(Promise);
});

test('a service that is always late is heard when it has aborted what it may no longer do', async () => {
  const said: string[] = [];
  const stop = beatForThread({ beatService: () => said.push('beat') });
  for (let turn = 0; turn < 3; turn += 1) {
    setTimeout(() => setImmediate(() => said.push('abort')), 100);
    sleep(600);
    await vi.advanceTimersByTimeAsync(100);
  }
  await vi.advanceTimersByTimeAsync(10);
  expect(said).toEqual(['abort', 'beat', 'abort', 'beat', 'abort', 'beat']);
  stop();
  vi.restoreAllMocks();
});

test('after both have slept a request waits until the service has been awake for a moment', async () => {
  const { ready } = startBoth();
  await vi.advanceTimersByTimeAsync(1_050);
  sleep(10_000);
  let isOut = false;
  void ready(undefined)?.then(() => (isOut = true));
  await vi.advanceTimersByTimeAsync(60);
  expect(isOut).toBe(false);
  await vi.advanceTimersByTimeAsync(150);
  expect(isOut).toBe(true);
  vi.restoreAllMocks();
});

test('after a sleep what the service has sent is read before a request goes out', async () => {
  vi.useRealTimers();
  const state = threadState(createStateBuffer());
  const ready = watchService(state);
  const { port1: service, port2: thread } = new MessageChannel();
  const seen: string[] = [];
  thread.on('message', (message: string) => seen.push(message));
  sleep(10_000);
  void ready(undefined)?.then(() => seen.push('request'));
  for (let turn = 0; turn < 20; turn += 1) await nextTick();
  expect(seen).toEqual([]);
  // Timers come next.
  await nextTick();
  service.postMessage('abort');
  state.beatService();
  // On a busy machine the thread gets no processor for a while.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
  await eventually(() => expect(seen).toHaveLength(2));
  expect(seen).toEqual(['abort', 'request']);
  thread.close();
  vi.restoreAllMocks();
});

test('an aborted request waits no longer', async () => {
  const { stop, ready } = startBoth();
  stop();
  await vi.advanceTimersByTimeAsync(1_100);
  const abort = new AbortController();
  let isOut = false;
  void ready(abort.signal)?.then(() => (isOut = true));
  await vi.advanceTimersByTimeAsync(100);
  expect(isOut).toBe(false);
  abort.abort();
  await vi.advanceTimersByTimeAsync(50);
  expect(isOut).toBe(true);
});
