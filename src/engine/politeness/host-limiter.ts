import type { Clock } from '../../domain/clock.ts';
import type { Politeness } from '../../domain/crawler-settings.ts';
import { createLruMap } from '../../domain/lru-map.ts';

/**
 * The reason of a page that was not crawled because its host's turn had not come. The job is to be
 * given back for `retryAfterMs`; it counts neither as a try nor as a failure.
 */
export const HOST_BUSY = 'host_busy';

/** Whose requests to which host are counted together. */
export interface HostKey {
  /** Undefined for inline crawls, which share one queue per account. */
  readonly crawlerId: string | undefined;
  readonly accountId: string;
  /** Host with its port. */
  readonly host: string;
}

/** The answer to a wish to ask a host. */
export type Admission =
  | {
      readonly admitted: true;
      /** Ends the request; `slowDownMs` keeps the host alone for that long (`Retry-After`). */
      leave(slowDownMs?: number): void;
    }
  | { readonly admitted: false; readonly retryAfterMs: number };

/** Spaces requests to hosts, separately for each crawler. */
export interface HostLimiter {
  /**
   * Waits for the host's turn, a few seconds at the longest. Rejects with the signal's reason when
   * aborted.
   */
  enter(key: HostKey, politeness: HostPace, signal: AbortSignal): Promise<Admission>;
}

/** The part of {@link Politeness} the gate keeps. */
export type HostPace = Pick<Politeness, 'maxPerHost' | 'delayMs'>;

/** Whoever would wait longer gives its place at the crawler to a URL of another host. */
const LONGEST_WAIT_MS = 2_000;
/**
 * Turns are promised no further ahead than this; a host whose queue is longer is asked about again.
 */
const LONGEST_PROMISE_MS = 10 * 60_000;
const LEAST_PROMISE_MS = 250;
const MAX_HOSTS = 10_000;

interface Host {
  running: number;
  /** No request starts before. */
  notBefore: number;
  /** Until when turns have been promised to those sent away. */
  promisedUntil: number;
  /** Running average of how long requests take. */
  requestMs: number;
  readonly waiting: (() => void)[];
}

/** Makes a gate without any hosts. */
export function createHostLimiter(deps: { readonly clock: Clock }): HostLimiter {
  const now = (): number => deps.clock.now().getTime();
  const hosts = createLruMap<string, Host>({
    maxEntries: MAX_HOSTS,
    isPinned: (host) => host.running > 0 || host.waiting.length > 0 || host.notBefore > now(),
  });

  function hostOf(key: HostKey): Host {
    const name = `${key.crawlerId ?? key.accountId} ${key.host}`;
    const host = hosts.get(name) ?? {
      running: 0,
      notBefore: 0,
      promisedUntil: 0,
      requestMs: 500,
      waiting: [],
    };
    hosts.set(name, host);
    return host;
  }

  // A turn later than all promised before: those sent away come back spread out, not all at once.
  function promise(host: Host, pace: HostPace): number {
    const moment = now();
    const spacing = Math.max(
      pace.delayMs,
      pace.maxPerHost > 0 ? host.requestMs / pace.maxPerHost : 0,
    );
    const next = Math.max(
      host.promisedUntil >= moment ? host.promisedUntil + spacing : 0,
      host.notBefore,
      moment + LEAST_PROMISE_MS,
    );
    host.promisedUntil = Math.min(next, moment + LONGEST_PROMISE_MS);
    return Math.round(host.promisedUntil - moment);
  }

  function start(host: Host, pace: HostPace): Admission {
    const startedAt = now();
    let left = false;
    host.running += 1;
    host.notBefore = Math.max(host.notBefore, startedAt + pace.delayMs);
    return {
      admitted: true,
      leave(slowDownMs = 0) {
        if (left) return;
        left = true;
        const endedAt = now();
        host.running -= 1;
        host.requestMs = host.requestMs * 0.8 + (endedAt - startedAt) * 0.2;
        host.notBefore = Math.max(host.notBefore, endedAt + slowDownMs);
        for (const wake of host.waiting.splice(0)) wake();
      },
    };
  }

  return {
    async enter(key, pace, signal) {
      const host = hostOf(key);
      const deadline = now() + LONGEST_WAIT_MS;
      for (;;) {
        signal.throwIfAborted();
        const moment = now();
        const isFull = pace.maxPerHost > 0 && host.running >= pace.maxPerHost;
        if (!isFull && host.notBefore <= moment) return start(host, pace);
        const wakeAt = isFull ? deadline : host.notBefore;
        if (moment >= deadline || wakeAt > deadline) {
          return { admitted: false, retryAfterMs: promise(host, pace) };
        }
        await sleep(host, wakeAt - moment, signal);
      }
    },
  };
}

// Until the time is over, a request at the host ends, or the crawl is aborted.
function sleep(host: Host, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      const at = host.waiting.indexOf(wake);
      if (at >= 0) host.waiting.splice(at, 1);
      resolve();
    };
    const timer = setTimeout(wake, Math.max(ms, 1));
    signal.addEventListener('abort', wake, { once: true });
    host.waiting.push(wake);
  });
}
