import type { CdpHandlers } from './cdp-connection.ts';
import type { PageNavigation } from './page-navigation.ts';
import type { BrowserPage } from './running-browser.ts';

/** Tells when a page asks nothing of the network. */
export interface NetworkQuiet {
  readonly handlers: CdpHandlers;
  /** Starts watching. */
  enable(): Promise<void>;
  /** Waits until nothing has been under way for half a second, or `ms` are over. */
  wait(ms: number): Promise<void>;
}

/** Network events without anything of the bodies. */
export const QUIET_NETWORK = {
  maxTotalBufferSize: 0,
  maxResourceBufferSize: 0,
  maxPostDataSize: 0,
} as const;

const QUIET_MS = 500;
/** Of a page that asks for more at once, this is as good as more. */
const MAX_COUNTED = 10_000;
/** These stay open, or nobody waits for them. */
const UNCOUNTED = new Set<string | undefined>(['EventSource', 'WebSocket', 'Ping', 'Preflight']);

/** Makes a watch that begins with {@link NetworkQuiet.enable}. */
export function createNetworkQuiet(page: BrowserPage, navigation: PageNavigation): NetworkQuiet {
  const underWay = new Set<string>();
  let changedAt = performance.now();

  function ended({ requestId }: { readonly requestId: string }): void {
    if (!underWay.delete(requestId)) return;
    changedAt = performance.now();
    navigation.notify();
  }

  return {
    handlers: {
      'Network.requestWillBeSent'({ requestId, type }) {
        if (UNCOUNTED.has(type) || underWay.size >= MAX_COUNTED) return;
        underWay.add(requestId);
        changedAt = performance.now();
        navigation.notify();
      },
      'Network.loadingFinished': ended,
      'Network.loadingFailed': ended,
      'Page.frameNavigated'({ frame }) {
        // What the document before has asked for is not told of any more.
        if (frame.id === page.frameId) underWay.clear();
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
        if (!(await navigation.until(() => underWay.size === 0, left))) return;
        const quietIn = changedAt + QUIET_MS - performance.now();
        if (quietIn <= 0) return;
        const since = changedAt;
        await navigation.until(() => changedAt !== since, Math.min(quietIn, left));
      }
    },
  };
}
