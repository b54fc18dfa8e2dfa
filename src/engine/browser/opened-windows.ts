import type { CdpHandlers } from './cdp-connection.ts';

/**
 * Windows that a page opens; they are closed, and the crawl may continue in its own page instead.
 */
export interface OpenedWindows {
  readonly handlers: CdpHandlers;
  /** The address of the last window that a user's action opened since the last call. */
  take(): string | undefined;
}

/** Makes a collection without windows. */
export function createOpenedWindows(): OpenedWindows {
  let address: string | undefined;
  return {
    handlers: {
      'Page.windowOpen'({ url, userGesture }) {
        if (userGesture && /^https?:/.test(url)) address = url;
      },
    },
    take() {
      const taken = address;
      address = undefined;
      return taken;
    },
  };
}
