import type { TokenType } from '../domain/account.ts';
import type { CodedBody } from '../domain/body-coding.ts';
import type { Politeness } from '../domain/crawler-settings.ts';
import type { CrawlRequest } from '../domain/job.ts';
import type { CrawlStep } from '../domain/job-try.ts';
import type { CookieChanges, SessionCookie } from '../domain/session-cookies.ts';
import type { Room } from '../net/http-client.ts';
import type { CrawlTraffic } from '../net/proxy-traffic.ts';
import type { BodyRead, ReceivedBody } from './http/read-body.ts';

/** Most redirects of one crawl; as many as Chromium follows. */
export const MAX_REDIRECTS = 20;

/** Reads a body, which keeps a processor busy, while other crawls continue. */
export type ReadBody = (received: ReceivedBody) => Promise<BodyRead>;

/** The cookies that crawls with the same `cookies_session` share. */
export interface CookieSession {
  read(): Promise<readonly SessionCookie[]>;
  /** Keeps what a crawl changed, for crawls that read later. */
  change(changes: CookieChanges): void;
}

/** What a crawler may spend on proxies in a day. */
export interface ProxyBudget {
  /** When a proxy may be used again, in milliseconds of the service time; undefined for now. */
  opensAt(): Promise<number | undefined>;
  /** Bytes have passed. */
  spent(bytes: number): void;
}

/** One crawl. */
export interface CrawlTask {
  readonly request: CrawlRequest;
  readonly tokenType: TokenType;
  /** Keeps host queues of different accounts apart. */
  readonly accountId: string;
  /** Undefined for an inline crawl. */
  readonly crawlerId: string | undefined;
  readonly politeness: Politeness | undefined;
  /** Setting `proxy` of the crawler: the pool of crawls that name none. */
  readonly pool?: string | undefined;
  /** Crawled in the browser though the token is the Normal one. */
  readonly inBrowser?: boolean | undefined;
  /** URL of the proxy that the crawl goes through, with credentials; default none. */
  readonly proxy?: string | undefined;
  /** Default: the cookies of the crawl are its own. */
  readonly session?: CookieSession;
  /** Memory for the bodies that the crawl reads; default: only the size limit applies. */
  readonly room?: Room;
  /** Default: reads it in this thread. */
  readonly readBody?: ReadBody;
  /** Called when a request was sent to the target, as far as the engine sees it. */
  readonly onSent?: () => void;
  /** Called with the bytes through the proxy, when the crawl has ended. */
  readonly onTraffic?: (traffic: CrawlTraffic) => void;
  /** What the crawler may spend on proxies; default: as much as it needs. */
  readonly budget?: ProxyBudget | undefined;
}

/** Why a crawl failed. */
export interface CrawlFailure {
  /** Stable, for example `timeout`, `name_not_found` or `empty_body`. */
  readonly reason: string;
  /** Whether trying again may help. */
  readonly transient: boolean;
  /** What the target asked for (`Retry-After`). */
  readonly retryAfterMs?: number;
  /** See `JobTry.detail`. */
  readonly detail?: string;
}

/** The result of a crawl. */
export interface Page {
  /** The service's own status; see `domain/status.ts`. */
  readonly cbStatus: number;
  /** The target's status, 0 without a response. */
  readonly originalStatus: number;
  /** The address after redirects; that of the request when there was no response. */
  readonly url: string;
  /** UTF-8 when `isText`, else the target's bytes. Empty without a body. */
  readonly body: Uint8Array;
  /** `body` as the site coded it, where the bytes that were coded are just these. */
  readonly coded?: CodedBody | undefined;
  /** The media type with its parameters; `charset=utf-8` for text. */
  readonly contentType: string;
  readonly isText: boolean;
  /** The headers of the last response, names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  /** A JPEG, when it was asked for. */
  readonly screenshot?: Uint8Array;
  /** When it was crawled, if it comes from storage; ISO 8601. */
  readonly crawledAt?: string;
  /** Why a screenshot that was asked for is missing: `timeout` or `not_drawn`. */
  readonly screenshotFailed?: string;
  /** Absent when the crawl succeeded (`cbStatus` 200). */
  readonly failure?: CrawlFailure;
  /** What took how long. */
  readonly steps?: readonly CrawlStep[];
}

/** Crawls pages. */
export interface CrawlEngine {
  /**
   * Resolves with a page, also when the crawl failed, within the crawl's time limit. Rejects only
   * with the signal's reason.
   */
  crawl(task: CrawlTask, signal: AbortSignal): Promise<Page>;
  close(): Promise<void>;
}
