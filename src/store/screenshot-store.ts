/** A screenshot as it is kept. */
export interface StoredScreenshot {
  /** Not guessable: reading a screenshot takes no token. */
  readonly id: string;
  /** The account whose storage it counts in. */
  readonly accountId: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
  readonly expiresAt: Date;
}

/** Screenshots, which are kept for an hour. */
export interface ScreenshotStore {
  put(screenshot: StoredScreenshot): Promise<void>;
  /** Undefined when there is no such screenshot, or no longer. */
  get(id: string, now: Date): Promise<{ contentType: string; bytes: Uint8Array } | undefined>;
}
