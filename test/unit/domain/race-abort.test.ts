import { expect, test } from 'vitest';
import { raceAbort } from '../../../src/domain/race-abort.ts';

test('settles as the work does while nothing is aborted', async () => {
  const { signal } = new AbortController();
  await expect(raceAbort(Promise.resolve(1), signal)).resolves.toBe(1);
  await expect(raceAbort(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
});

test('rejects with the reason of an abort, before and during the work', async () => {
  const during = new AbortController();
  const never = new Promise<never>(() => undefined);
  const racing = raceAbort(never, during.signal);
  during.abort(new Error('stopped'));
  await expect(racing).rejects.toThrow('stopped');
  await expect(raceAbort(never, AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
});

test('work that fails after the abort is no unhandled rejection', async () => {
  const { promise, reject } = Promise.withResolvers<never>();
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    await expect(raceAbort(promise, AbortSignal.abort(new Error('stopped')))).rejects.toThrow();
    reject(new Error('late'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});
