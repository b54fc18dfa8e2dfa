/**
 * Streams that the tabs of a browser read at a time. Over HTTP/1 they have six connections to the
 * service together, and each stream takes one.
 */
const MAX_STREAMS = 2;

/** What a tab says that wants to follow the stream of another one. */
const HELLO = 'hello';

/**
 * A stream that one tab reads for all tabs of the browser that want the same, as its `key` says.
 * When that tab leaves, another one reads. Ends at once where the tabs read as many other streams as
 * they may. Data has to be such as `postMessage` takes.
 */
export async function* sharedStream<Data>(
  key: string,
  open: (signal: AbortSignal) => AsyncIterable<Data>,
  signal: AbortSignal,
): AsyncGenerator<Data> {
  // Browsers have locks only where a page came by TLS or from this computer.
  if (navigator.locks === undefined) {
    yield* open(signal);
    return;
  }
  const left = new AbortController();
  const until = AbortSignal.any([signal, left.signal]);
  const channel = new BroadcastChannel(`console-stream ${key}`);
  let last: Data | undefined;
  // A list of thousands takes long to copy, so nothing is posted while no tab follows.
  let isFollowed = false;
  // Before the lock is asked for: a tab that does not get it says hello at once.
  channel.addEventListener('message', ({ data }) => {
    if (data !== HELLO) return;
    isFollowed = true;
    if (last !== undefined) channel.postMessage({ value: last });
  });
  try {
    if (!(await tryLock(`console-stream ${key}`, until))) {
      yield* follow<Data>(channel, key, until);
      // Others may have followed the same tab.
      isFollowed = true;
    }
    if (until.aborted || !(await takePlace(until))) return;
    for await (const value of open(until)) {
      last = value;
      if (isFollowed) channel.postMessage({ value });
      yield value;
    }
  } finally {
    left.abort();
    channel.close();
  }
}

/** What the reading tab says, until this tab has its lock. */
async function* follow<Data>(
  channel: BroadcastChannel,
  key: string,
  until: AbortSignal,
): AsyncGenerator<Data> {
  let newest: { readonly value: Data } | undefined;
  let hasLock = false;
  let wake = (): void => undefined;
  channel.addEventListener('message', ({ data }) => {
    if (data === HELLO) return;
    newest = data as { value: Data };
    wake();
  });
  void lock(`console-stream ${key}`, until, {}).then(() => {
    hasLock = true;
    wake();
  });
  channel.postMessage(HELLO);
  while (!hasLock) {
    if (newest !== undefined) {
      const { value } = newest;
      newest = undefined;
      yield value;
    } else {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
}

async function takePlace(until: AbortSignal): Promise<boolean> {
  for (let place = 0; place < MAX_STREAMS; place += 1) {
    if (await tryLock(`console-place ${place}`, until)) return true;
  }
  return false;
}

const tryLock = (name: string, until: AbortSignal): Promise<boolean> =>
  lock(name, until, { ifAvailable: true });

/** Takes a lock, and holds it until the signal. False when it is not to be had, or at the signal. */
function lock(name: string, until: AbortSignal, how: { ifAvailable?: boolean }): Promise<boolean> {
  return new Promise((resolve) => {
    const options = how.ifAvailable === true ? how : { signal: until };
    navigator.locks
      .request(name, options, async (granted) => {
        resolve(granted !== null);
        if (granted === null || until.aborted) return;
        await new Promise<void>((release) => {
          until.addEventListener('abort', () => release(), { once: true });
        });
      })
      .catch(() => resolve(false));
  });
}
