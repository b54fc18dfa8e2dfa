import { Code } from '@connectrpc/connect';
import { computed, type Signal, signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { type Fault, faultOf } from './fault.ts';
import { checkSession, session } from './session.ts';
import { sharedStream } from './shared-stream.ts';

/**
 * How current what is shown is: `live` as the service streams it, `polling` when it is asked again
 * and again, `offline` when it does not answer.
 */
export type FeedState = 'starting' | 'live' | 'polling' | 'offline';

/** Data that stays current while its component is shown. */
export interface Feed<Data> {
  /** Undefined until the first answer; kept when a later one fails. */
  readonly data: Data | undefined;
  readonly fault: Fault | undefined;
  readonly state: FeedState;
  /** Reads again at once, after an action of the user. Does not wait for the next poll. */
  refresh(): void;
}

/** Where a feed reads from. */
export interface FeedSource<Data> {
  /** A new key starts the feed anew and forgets the data. */
  readonly key: string;
  /** Yields the data at each message. Where it is absent or fails, `poll` takes its place. */
  readonly stream?: (signal: AbortSignal) => AsyncIterable<Data>;
  readonly poll: (signal: AbortSignal) => Promise<Data>;
  /** Between two polls, in milliseconds. Default 5,000; the pause grows while calls fail. */
  readonly everyMs?: number;
  /**
   * What another feed's stream says of the data: with each new value `poll` is called at once.
   * Undefined while nothing is streamed.
   */
  readonly changes?: string | undefined;
}

/** The `everyMs` of what does not change while people look at it. */
export const ONCE_MS = 3_600_000;

const POLL_MS = 5_000;
const SLOWEST_MS = 30_000;
/** The service sends something every 15 s; a stream that is silent for longer is broken. */
const SILENCE_MS = 25_000;

/** The states of all feeds that are shown. */
export const feedStates: Signal<ReadonlyMap<symbol, FeedState>> = signal(new Map());

/** Whether the service does not answer. */
export const isOffline = computed(() => [...feedStates.value.values()].includes('offline'));

/** When the service last answered, in milliseconds since 1970. */
export const answeredAt = signal(Date.now());

/** Why a stream has ended the last time; empty when none has. */
export const whyNotLive = signal('');

/** Ends the pauses of feeds that the service did not answer. */
const away = new Set<() => void>();

/** Follows a source while the component is shown. */
export function useFeed<Data>(source: FeedSource<Data>): Feed<Data> {
  const data = useSignal<Data | undefined>(undefined);
  const fault = useSignal<Fault | undefined>(undefined);
  const state = useSignal<FeedState>('starting');
  const latest = useRef(source);
  latest.current = source;
  /** Makes the next poll due now; undefined while a stream is read. */
  const wake = useRef<(() => void) | undefined>(undefined);

  useEffect(() => {
    const id = Symbol(source.key);
    // Tabs of another account have other data.
    const shared = `${session.peek()?.account} ${source.key}`;
    const ended = new AbortController();
    data.value = undefined;
    fault.value = undefined;
    const enter = (next: FeedState): void => {
      state.value = next;
      // What is read once does not get old.
      const shown = next === 'polling' && latest.current.everyMs === ONCE_MS ? 'starting' : next;
      if (feedStates.peek().get(id) !== shown) {
        feedStates.value = new Map(feedStates.peek()).set(id, shown);
      }
    };
    const take = (next: Data, how: FeedState): void => {
      const isBack = state.peek() === 'offline';
      data.value = next;
      fault.value = undefined;
      answeredAt.value = Date.now();
      enter(how);
      // The service answers again: the others need not wait until their pauses, which have grown, end.
      if (isBack) for (const proceed of away) proceed();
    };
    const fail = (error: unknown): void => {
      const found = faultOf(error);
      fault.value = found;
      if (found.code === Code.Unauthenticated) void checkSession();
      enter(found.reason === '' ? 'offline' : 'polling');
    };

    async function follow(): Promise<void> {
      let failures = 0;
      const polled = (): FeedState => (latest.current.changes === undefined ? 'polling' : 'live');
      while (!ended.signal.aborted) {
        const { stream, poll, everyMs = POLL_MS } = latest.current;
        if (stream !== undefined) {
          await whileHeardAndSeen(ended.signal, async (signal, heard) => {
            for await (const next of sharedStream(shared, stream, signal)) {
              heard();
              take(next, 'live');
            }
          }).catch((error: unknown) => {
            // Polling says what is wrong, if it fails as well.
            whyNotLive.value = faultOf(error).text;
          });
          await untilVisible(ended.signal);
          if (ended.signal.aborted) return;
        }
        // What is being read may already be older than the change that asks for it again.
        let isStale = false;
        wake.current = () => {
          isStale = true;
        };
        try {
          take(await poll(ended.signal), polled());
          failures = 0;
        } catch (error) {
          if (ended.signal.aborted) return;
          fail(error);
          failures += 1;
        }
        const pause = Math.min(everyMs * 2 ** failures, SLOWEST_MS);
        await new Promise<void>((resolve) => {
          const finish = (): void => {
            clearTimeout(timer);
            away.delete(finish);
            ended.signal.removeEventListener('abort', finish);
            resolve();
          };
          const timer = setTimeout(finish, isStale && failures === 0 ? 0 : pause);
          wake.current = finish;
          if (state.peek() === 'offline') away.add(finish);
          ended.signal.addEventListener('abort', finish);
        });
        wake.current = undefined;
        await untilVisible(ended.signal);
      }
    }
    void follow();

    return () => {
      ended.abort();
      const rest = new Map(feedStates.peek());
      rest.delete(id);
      feedStates.value = rest;
    };
  }, [source.key]);

  const refresh = (): void => {
    if (wake.current !== undefined) {
      wake.current();
      return;
    }
    const { poll, key } = latest.current;
    poll(new AbortController().signal).then(
      (next) => {
        if (latest.current.key === key) data.value = next;
      },
      // The stream reports what goes wrong.
      () => undefined,
    );
  };
  useEffect(() => {
    if (source.changes !== undefined && state.peek() !== 'starting') refresh();
  }, [source.changes]);

  return { data: data.value, fault: fault.value, state: state.value, refresh };
}

/**
 * Runs until the stream is silent for too long, or the tab is hidden. Over HTTP/1 a browser has six
 * connections for all of its tabs, and a stream takes one.
 */
async function whileHeardAndSeen(
  outer: AbortSignal,
  run: (signal: AbortSignal, heard: () => void) => Promise<void>,
): Promise<void> {
  const inner = new AbortController();
  const stop = (): void => inner.abort();
  const stopIfHidden = (): void => {
    if (document.hidden) stop();
  };
  let timer = setTimeout(stop, SILENCE_MS);
  document.addEventListener('visibilitychange', stopIfHidden);
  try {
    await run(AbortSignal.any([outer, inner.signal]), () => {
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE_MS);
    });
  } finally {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', stopIfHidden);
  }
}

function untilVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', done);
      resolve();
    };
    document.addEventListener('visibilitychange', done);
    signal.addEventListener('abort', done, { once: true });
  });
}
