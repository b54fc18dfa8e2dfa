import type { TokenType } from '../domain/account.ts';
import type { Politeness } from '../domain/crawler-settings.ts';
import type { CrawlRequest } from '../domain/job.ts';
import type { Room } from '../net/http-client.ts';

/** Runs work that may keep the processor busy. */
export type ProcessBody = <Result>(
  bodyBytes: number,
  work: () => Result | Promise<Result>,
) => Promise<Result>;

/** One crawl. */
export interface CrawlTask {
  readonly request: CrawlRequest;
  readonly tokenType: TokenType;
  /** Keeps cookie sessions and host queues of different accounts apart. */
  readonly accountId: string;
  /** The crawler, or undefined for an inline crawl. */
  readonly crawlerId: string | undefined;
  readonly politeness: Politeness | undefined;
  /** Memory for the bodies it reads; without it only the size limit applies. */
  readonly room?: Room;
  /**
   * Runs what may keep the processor busy with a body of so many bytes, when it is this account's
   * turn; default runs it at once.
   */
  readonly process?: ProcessBody;
}

/** Why a crawl did not end well. */
export interface CrawlFailure {
  /** Stable, for example `timeout`, `name_not_found`, `empty_body`. */
  readonly reason: string;
  /** Whether trying again may help. */
  readonly transient: boolean;
  /** The target's own wish (`Retry-After`). */
  readonly retryAfterMs?: number;
}

/** What a crawl brought back. */
export interface Page {
  /** Status given by the service: `domain/status.ts`. */
  readonly cbStatus: number;
  /** The target's, 0 when it gave none. */
  readonly originalStatus: number;
  /** Address after redirects; the request's when none was reached. */
  readonly url: string;
  /** UTF-8 when `isText`, else the target's bytes. Empty when there is none. */
  readonly body: Uint8Array;
  /** Media type with its parameters; `charset=utf-8` for text. */
  readonly contentType: string;
  readonly isText: boolean;
  /** The target's headers, names in lower case, of the last answer. */
  readonly headers: readonly (readonly [string, string])[];
  /** JPEG, when it was asked for. */
  readonly screenshot?: Uint8Array;
  /** Why there is no picture though one was asked for: `timeout` or `not_drawn`. */
  readonly screenshotFailed?: string;
  /** Absent when the crawl ended well (`cbStatus` 200). */
  readonly failure?: CrawlFailure;
}

/** Crawls pages. */
export interface CrawlEngine {
  /**
   * Always resolves with a page, failures included, within the crawl's time limit; rejects only
   * with the signal's reason when it was aborted.
   */
  crawl(task: CrawlTask, signal: AbortSignal): Promise<Page>;
  close(): Promise<void>;
}
