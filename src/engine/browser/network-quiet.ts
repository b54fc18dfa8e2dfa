import type { CdpHandlers } from './cdp-connection.ts';
import type { PageNavigation } from './page-navigation.ts';
import type { BrowserPage } from './running-browser.ts';

/** Watches whether a page has requests in flight. */
export interface NetworkQuiet {
  readonly handlers: CdpHandlers;
  /** Starts watching. */
  enable(): Promise<void>;
  /** Waits until no request was in flight for half a second, at most `ms`. */
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

/** Makes a watch that starts with {@link NetworkQuiet.enable}. */
export function createNetworkQuiet(page: BrowserPage, navigation: PageNavigation): NetworkQuiet {
  const inFlight = new Set<string>();
  let changedAt = performance.now();

  function onEnd({ requestId }: { readonly requestId: string }): void {
    if (!inFlight.delete(requestId)) return;
    changedAt = performance.now();
    navigation.notify();
  }

  return {
    handlers: {
      'Network.requestWillBeSent'({ requestId, type }) {
        if (IGNORED_TYPES.has(type) || inFlight.size >= MAX_IN_FLIGHT) return;
        inFlight.add(requestId);
        changedAt = performance.now();
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
      changedAt = Math.max(changedAt, performance.now() - QUIET_MS);
      for (;;) {
        const left = until - performance.now();
        if (left <= 0) return;
        if (!(await navigation.until(() => inFlight.size === 0, left))) return;
        const quietIn = changedAt + QUIET_MS - performance.now();
        if (quietIn <= 0) return;
        const since = changedAt;
        await navigation.until(() => changedAt !== since, Math.min(quietIn, left));
      }
    },
  };
}
