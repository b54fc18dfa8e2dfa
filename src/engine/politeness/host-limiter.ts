import type { Clock } from '../../domain/clock.ts';
import type { Politeness } from '../../domain/crawler-settings.ts';
import { createLruMap } from '../../domain/lru-map.ts';

/**
 * The reason of a page that was not crawled because its host had no free slot. The job goes back to
 * the queue for `retryAfterMs`, and that counts neither as a try nor as a failure.
 */
export const HOST_BUSY = 'host_busy';

/** Which requests are limited together. */
export interface HostKey {
  /** Undefined for inline crawls, which share one limit per account. */
  readonly crawlerId: string | undefined;
  readonly accountId: string;
  /** Host with its port. */
  readonly host: string;
}

/** Result of {@link HostLimiter.acquire}. */
export type HostAdmission =
  | {
      readonly admitted: true;
      /**
       * Ends the request. No request to the host starts for `slowDownMs` after it (`Retry-After`).
       */
      release(slowDownMs?: number): void;
    }
  | { readonly admitted: false; readonly retryAfterMs: number };

/** Limits and spaces requests to hosts, separately for each crawler. */
export interface HostLimiter {
  /**
   * Waits up to two seconds until a request to the host may start. Rejects with the signal's reason
   * when aborted.
   */
  acquire(key: HostKey, pace: HostPace, signal: AbortSignal): Promise<HostAdmission>;
}

/** The part of {@link Politeness} that the limiter enforces. */
export type HostPace = Pick<Politeness, 'maxPerHost' | 'delayMs'>;

/** A crawl that would wait longer frees its slot of the crawler for a URL of another host. */
const MAX_WAIT_MS = 2_000;
/** Slots are reserved at most this far ahead; a URL beyond that asks again. */
const MAX_RESERVATION_MS = 10 * 60_000;
const MIN_RESERVATION_MS = 250;
const MAX_HOSTS = 10_000;
/** Assumed duration of a request until some were measured. */
const INITIAL_REQUEST_MS = 500;

interface Host {
  running: number;
  /** No request starts before this time. */
  notBefore: number;
  /** The latest time that was reserved for a URL that was turned away. */
  reservedUntil: number;
  /** Moving average of how long requests take. */
  requestMs: number;
  readonly waiting: (() => void)[];
}

/** Makes a limiter that knows no host. */
export function createHostLimiter(deps: { readonly clock: Clock }): HostLimiter {
  const now = (): number => deps.clock.now().getTime();
  const hosts = createLruMap<string, Host>({
    maxEntries: MAX_HOSTS,
    isPinned: (host) => host.running > 0 || host.waiting.length > 0 || host.notBefore > now(),
  });

  function openHost(key: HostKey): Host {
    const name = `${key.crawlerId ?? key.accountId} ${key.host}`;
    const host = hosts.get(name) ?? {
      running: 0,
      notBefore: 0,
      reservedUntil: 0,
      requestMs: INITIAL_REQUEST_MS,
      waiting: [],
    };
    hosts.set(name, host);
    return host;
  }

  /** Reserves the next free time, so that URLs that were turned away come back one by one. */
  function reserve(host: Host, pace: HostPace): number {
    const moment = now();
    const spacing = Math.max(
      pace.delayMs,
      pace.maxPerHost > 0 ? host.requestMs / pace.maxPerHost : 0,
    );
    const next = Math.max(
      host.reservedUntil >= moment ? host.reservedUntil + spacing : 0,
      host.notBefore,
      moment + MIN_RESERVATION_MS,
    );
    host.reservedUntil = Math.min(next, moment + MAX_RESERVATION_MS);
    return Math.round(host.reservedUntil - moment);
  }

  function start(host: Host, pace: HostPace): HostAdmission {
    const startedAt = now();
    let released = false;
    host.running += 1;
    host.notBefore = Math.max(host.notBefore, startedAt + pace.delayMs);
    return {
      admitted: true,
      release(slowDownMs = 0) {
        if (released) return;
        released = true;
        const endedAt = now();
        host.running -= 1;
        host.requestMs = host.requestMs * 0.8 + (endedAt - startedAt) * 0.2;
        host.notBefore = Math.max(host.notBefore, endedAt + slowDownMs);
        for (const wake of host.waiting.splice(0)) wake();
      },
    };
  }

  return {
    async acquire(key, pace, signal) {
      const host = openHost(key);
      const deadline = now() + MAX_WAIT_MS;
      for (;;) {
        signal.throwIfAborted();
        const moment = now();
        const isFull = pace.maxPerHost > 0 && host.running >= pace.maxPerHost;
        if (!isFull && host.notBefore <= moment) return start(host, pace);
        const wakeAt = isFull ? deadline : host.notBefore;
        if (moment >= deadline || wakeAt > deadline) {
          return { admitted: false, retryAfterMs: reserve(host, pace) };
        }
        await sleep(host, wakeAt - moment, signal);
      }
    },
  };
}

/** Resolves after `ms`, when a request to the host ends, or when the signal is aborted. */
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
