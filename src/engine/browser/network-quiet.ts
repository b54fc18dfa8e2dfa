import type { CdpHandlers } from './cdp-connection.ts';
import type { PageNavigation } from './page-navigation.ts';
import type { BrowserPage } from './running-browser.ts';
import { siteOf } from './site-of.ts';

/** Watches whether a page has requests in flight. */
export interface NetworkQuiet {
  readonly handlers: CdpHandlers;
  /** Starts watching. */
  enable(): Promise<void>;
  /** Whether requests are in flight that a page may be waiting for. */
  readonly isBusy: boolean;
  /**
   * Waits until no request was in flight for half a second, at most `ms`. Requests that never end
   * or are repeated do not count. That is, those to other sites after 2 s, all after 10 s, and a
   * script's from the fourth to the same path.
   */
  wait(ms: number): Promise<void>;
}

/** Parameters of `Network.enable` for events without bodies. */
export const QUIET_NETWORK = {
  maxTotalBufferSize: 0,
  maxResourceBufferSize: 0,
  maxPostDataSize: 0,
} as const;

const QUIET_MS = 500;
/** Further requests of a page that has this many in flight are not counted. */
const MAX_IN_FLIGHT = 10_000;
/** Requests that stay open, or that no page waits for. */
const IGNORED_TYPES = new Set<string | undefined>([
  'EventSource',
  'WebSocket',
  'Ping',
  'Preflight',
]);

/** A request that takes longer is a poll, or nobody waits for it. */
const LONG_MS = 10_000;
/** The same for requests to other sites than the page's. */
const LONG_ELSEWHERE_MS = 2_000;
/** A script that requests one path more often than this is polling. */
const MAX_REPEATS = 3;
const MAX_PATHS = 1_000;
/** How often requests are looked at that become too long to count. */
const CHECK_MS = 250;

/** Makes a watch that starts with {@link NetworkQuiet.enable}. */
export function createNetworkQuiet(page: BrowserPage, navigation: PageNavigation): NetworkQuiet {
  /** When each request stops to count. */
  const inFlight = new Map<string, number>();
  const repeats = new Map<string, number>();
  let changedAt = performance.now();

  function onEnd({ requestId }: { readonly requestId: string }): void {
    if (!inFlight.delete(requestId)) return;
    changedAt = performance.now();
    navigation.notify();
  }

  function isPoll(type: string | undefined, url: string): boolean {
    if (type !== 'XHR' && type !== 'Fetch') return false;
    const [path = ''] = url.split(/[?#]/);
    const count = (repeats.get(path) ?? 0) + 1;
    if (count === 1 && repeats.size >= MAX_PATHS) repeats.clear();
    repeats.set(path, count);
    return count > MAX_REPEATS;
  }

  function isBusy(): boolean {
    const now = performance.now();
    for (const until of inFlight.values()) if (until > now) return true;
    return false;
  }

  return {
    get isBusy() {
      return isBusy();
    },
    handlers: {
      'Network.requestWillBeSent'({ requestId, type, request: { url } }) {
        if (IGNORED_TYPES.has(type) || inFlight.size >= MAX_IN_FLIGHT || isPoll(type, url)) return;
        changedAt = performance.now();
        const isElsewhere = siteOf(url) !== siteOf(navigation.url || url);
        inFlight.set(requestId, changedAt + (isElsewhere ? LONG_ELSEWHERE_MS : LONG_MS));
        navigation.notify();
      },
      'Network.loadingFinished': onEnd,
      'Network.loadingFailed': onEnd,
      'Page.frameNavigated'({ frame }) {
        // The end of requests of the previous document is not reported.
        if (frame.id === page.frameId) inFlight.clear();
      },
    },
    async enable() {
      await page.send('Network.enable', QUIET_NETWORK);
    },
    async wait(ms) {
      const until = performance.now() + ms;
      for (;;) {
        const now = performance.now();
        if (now >= until) return;
        if (isBusy()) {
          await navigation.until(() => !isBusy(), Math.min(until - now, CHECK_MS));
          continue;
        }
        const quietIn = changedAt + QUIET_MS - now;
        if (quietIn <= 0) return;
        const since = changedAt;
        await navigation.until(() => changedAt !== since, Math.min(quietIn, until - now));
      }
    },
  };
}
