import type { CdpHandlers } from './cdp-connection.ts';

/** Where a page is and where it goes. */
export interface PageNavigation {
  readonly handlers: CdpHandlers;
  /** Address of the last document that came over http or https; empty when there was none. */
  readonly url: string;
  /** Where the page went and found nothing, while that is what it shows. */
  readonly unreachable: string | undefined;
  /** How many documents the page has shown. */
  readonly documents: number;
  /** Whether the document shown has loaded. */
  readonly isLoaded: boolean;
  /** Whether another document is about to take its place. */
  readonly isLeaving: boolean;
  /** Whether everything it was loading has ended. */
  readonly isStopped: boolean;
  /** Whether the condition came true within the time; it is asked after each event. */
  until(condition: () => boolean, ms: number): Promise<boolean>;
  /** Asks the conditions again, because of something that is not an event of the page's frame. */
  notify(): void;
}

/** Longest delay of a refresh that counts as part of loading. */
const REFRESH_SECONDS = 1;

/** Follows the main frame by its events. */
export function createPageNavigation(mainFrameId: string): PageNavigation {
  const waiting = new Set<() => void>();
  let url = '';
  let unreachable: string | undefined;
  let documents = 0;
  let shown: string | undefined;
  let loaded = false;
  let stopped = false;
  /** The document that is being fetched. */
  let next: string | undefined;
  let scheduled = false;

  function notify(): void {
    for (const check of Array.from(waiting)) check();
  }

  function at(address: string): void {
    if (/^https?:/.test(address)) url = address;
  }

  /** A handler for events of the main frame. */
  const main =
    <Params extends { readonly frameId: string }>(handle: (params: Params) => void) =>
    (params: Params): void => {
      if (params.frameId !== mainFrameId) return;
      handle(params);
      notify();
    };

  return {
    handlers: {
      'Page.frameStartedNavigating': main(({ loaderId, navigationType }) => {
        if (!/samedocument/i.test(navigationType)) next = loaderId;
      }),
      'Page.frameNavigated'({ frame }) {
        if (frame.id !== mainFrameId) return;
        shown = frame.loaderId;
        if (next === frame.loaderId) next = undefined;
        loaded = false;
        scheduled = false;
        documents += 1;
        unreachable = frame.unreachableUrl;
        if (unreachable === undefined) at(frame.url + (frame.urlFragment ?? ''));
        notify();
      },
      'Page.navigatedWithinDocument': main((params) => at(params.url)),
      'Page.lifecycleEvent': main(({ loaderId, name }) => {
        if (name === 'load' && loaderId === shown) loaded = true;
      }),
      'Page.frameStartedLoading': main(() => {
        stopped = false;
      }),
      'Page.frameStoppedLoading': main(() => {
        stopped = true;
        // What was fetched turned out to be nothing to show.
        next = undefined;
      }),
      'Page.frameScheduledNavigation': main((params) => {
        scheduled = params.delay <= REFRESH_SECONDS && params.url !== url;
      }),
      'Page.frameClearedScheduledNavigation': main(() => {
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
    get isLoaded() {
      return loaded;
    },
    get isLeaving() {
      return scheduled || next !== undefined;
    },
    get isStopped() {
      return stopped;
    },
    notify,
    until(condition, ms) {
      if (condition()) return Promise.resolve(true);
      return new Promise((resolve) => {
        const end = (held: boolean): void => {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(held);
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
