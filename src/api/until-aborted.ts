import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { methodName } from './method.ts';

/** Throws UNAVAILABLE when the server is shutting down, which ends the streams of a method. */
export function assertNotDrained(draining: AbortSignal, desc: DescMethod): void {
  if (!draining.aborted) return;
  throw new ConnectError(`${methodName(desc)}: the server is shutting down.`, Code.Unavailable);
}

/**
 * Yields the values of `source` until it ends or `signal` is aborted, whichever comes first. A
 * value that was taken from `source` is always yielded.
 */
export async function* untilAborted<Value>(
  source: AsyncIterable<Value>,
  signal: AbortSignal,
): AsyncGenerator<Value, void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  // One listener for the whole stream: racing each value against a promise would keep a reaction
  // for each value.
  let stop = (): void => undefined;
  const onAbort = () => stop();
  signal.addEventListener('abort', onAbort);
  try {
    while (!signal.aborted) {
      const next = await new Promise<IteratorResult<Value> | undefined>((resolve, reject) => {
        stop = () => resolve(undefined);
        iterator.next().then(resolve, reject);
      });
      if (next === undefined || next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    // Not awaited: a source that waits for its next value returns only after that value.
    iterator.return?.().catch(() => undefined);
  }
}
