import { setTimeout as wait } from 'node:timers/promises';

/**
 * Calls `probe` until it does not throw, and returns its value. Throws when `timeoutMs` (default
 * 180,000: a busy machine is slow, and only failures wait that long) have passed; the message names
 * `what` was awaited and the last failure.
 */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  options: { readonly timeoutMs?: number; readonly what?: string } = {},
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? 180_000;
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = 2; ; pauseMs = Math.min(pauseMs * 1.5, 50)) {
    try {
      return await probe();
    } catch (error) {
      if (performance.now() >= deadline) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new Error(`${options.what ?? 'condition'} not met in ${timeoutMs} ms: ${reason}`, {
          cause: error,
        });
      }
    }
    await wait(pauseMs);
  }
}
