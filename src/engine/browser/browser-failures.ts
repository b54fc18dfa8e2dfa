/** No browser can be started now. The message says why. */
export class BrowserUnavailable extends Error {
  override readonly name = 'BrowserUnavailable';
  /** Milliseconds until the next start is tried. */
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

/** No page was free in time. */
export class BrowserBusy extends Error {
  override readonly name = 'BrowserBusy';
}

/**
 * How a page ended before it was closed. `too_heavy`: it was ended because it took too much
 * memory, or sent the browser more messages than it can take.
 */
export type PageEnd = 'crashed' | 'too_heavy' | 'browser_ended';

/** A page that ended before its crawl did. */
export class PageEnded extends Error {
  override readonly name = 'PageEnded';
  readonly how: PageEnd;

  constructor(how: PageEnd) {
    super(`The page has ended: ${how}`);
    this.how = how;
  }
}
