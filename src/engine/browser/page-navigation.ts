import type { CdpHandlers } from './cdp-connection.ts';

/** Where the main frame of a page is, and where it navigates. */
export interface PageNavigation {
  readonly handlers: CdpHandlers;
  /** The address of the last document that came by http or https; empty before the first one. */
  readonly url: string;
  /** The address that the page could not load, while it shows that error. */
  readonly unreachable: string | undefined;
  /** How many documents the page has shown. */
  readonly documents: number;
  /** Whether the document that is shown has been read to its end. */
  readonly isRead: boolean;
  /** Whether the document that is shown has loaded. */
  readonly isLoaded: boolean;
  /** Whether the page is about to show another document. */
  readonly isLeaving: boolean;
  /** Whether everything that it was loading has ended. */
  readonly isStopped: boolean;
  /**
   * Waits until the condition is true, which is checked after each event; false when it was not
   * within `ms`.
   */
  until(condition: () => boolean, ms: number): Promise<boolean>;
  /** Lets the document that is shown count as loaded. */
  stopWaiting(): void;
  /** Checks the conditions again, after something that is not an event of the main frame. */
  notify(): void;
}

/** Longest delay, in seconds, of a refresh that counts as part of loading. */
const MAX_REFRESH_S = 1;

/** Makes a view of the main frame that follows its events. */
export function createPageNavigation(mainFrameId: string): PageNavigation {
  const waiting = new Set<() => void>();
  let url = '';
  let unreachable: string | undefined;
  let documents = 0;
  let shown: string | undefined;
  let loaded = false;
  let read = false;
  let stopped = false;
  /** Loader id of the document that is being fetched. */
  let next: string | undefined;
  let scheduled = false;

  function notify(): void {
    for (const check of Array.from(waiting)) check();
  }

  function setUrl(address: string): void {
    if (/^https?:/.test(address)) url = address;
  }

  /** A handler for events of the main frame. */
  const ofMainFrame =
    <Params extends { readonly frameId: string }>(handle: (params: Params) => void) =>
    (params: Params): void => {
      if (params.frameId !== mainFrameId) return;
      handle(params);
      notify();
    };

  return {
    handlers: {
      'Page.frameStartedNavigating': ofMainFrame(({ loaderId, navigationType }) => {
        if (!/samedocument/i.test(navigationType)) next = loaderId;
      }),
      'Page.frameNavigated'({ frame }) {
        if (frame.id !== mainFrameId) return;
        shown = frame.loaderId;
        if (next === frame.loaderId) next = undefined;
        loaded = false;
        read = false;
        scheduled = false;
        documents += 1;
        unreachable = frame.unreachableUrl;
        if (unreachable === undefined) setUrl(frame.url + (frame.urlFragment ?? ''));
        notify();
      },
      'Page.navigatedWithinDocument': ofMainFrame((params) => setUrl(params.url)),
      'Page.lifecycleEvent': ofMainFrame(({ loaderId, name }) => {
        if (loaderId !== shown) return;
        if (name === 'load') loaded = true;
        if (name === 'DOMContentLoaded') read = true;
      }),
      'Page.frameStartedLoading': ofMainFrame(() => {
        stopped = false;
      }),
      'Page.frameStoppedLoading': ofMainFrame(() => {
        stopped = true;
        // What was fetched is no document to show.
        next = undefined;
      }),
      'Page.frameScheduledNavigation': ofMainFrame((params) => {
        scheduled = params.delay <= MAX_REFRESH_S && params.url !== url;
      }),
      'Page.frameClearedScheduledNavigation': ofMainFrame(() => {
        scheduled = false;
      }),
    },
    get url() {
      return url;
    },
    get unreachable() {
      return unreachable;
    },
    get documents() {
      return documents;
    },
    get isRead() {
      return read;
    },
    get isLoaded() {
      return loaded;
    },
    get isLeaving() {
      return scheduled || next !== undefined;
    },
    get isStopped() {
      return stopped;
    },
    stopWaiting() {
      loaded = true;
    },
    notify,
    until(condition, ms) {
      if (condition()) return Promise.resolve(true);
      return new Promise((resolve) => {
        const end = (isTrue: boolean): void => {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(isTrue);
        };
        const check = (): void => {
          if (condition()) end(true);
        };
        const timer = setTimeout(() => end(false), ms);
        timer.unref();
        waiting.add(check);
      });
    },
  };
}
