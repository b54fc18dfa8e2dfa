/** The items of a loop. Once its signal is aborted it throws the reason, whatever the loop throws. */
export async function* stopAt<Item>(
  signal: AbortSignal | undefined,
  loop: AsyncGenerator<Item, void, undefined>,
): AsyncGenerator<Item, void, undefined> {
  try {
    yield* loop;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/** The items of a source. It throws the signal's reason also while the source has nothing. */
export async function* readUntil<Item>(
  signal: AbortSignal,
  source: Iterable<Item> | AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  let refuse: ((reason: unknown) => void) | undefined;
  const stop = (): void => refuse?.(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  const items =
    Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  // Not by `Promise.race`: one promise that never settles would keep a reaction to each item.
  const next = () =>
    new Promise<IteratorResult<Item>>((resolve, reject) => {
      refuse = reject;
      Promise.resolve(items.next()).then(resolve, reject);
    });
  let isOpen = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      isOpen = false;
      const { done, value } = await next();
      if (done === true) return;
      isOpen = true;
      yield value;
    }
  } finally {
    signal.removeEventListener('abort', stop);
    // A source that has nothing returns only when it has something again.
    if (signal.aborted) void Promise.resolve(items.return?.()).catch(() => undefined);
    else if (isOpen) await items.return?.();
  }
}
