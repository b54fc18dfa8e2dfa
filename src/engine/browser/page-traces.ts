import type { Protocol } from 'devtools-protocol';
import type { HeaderPair } from '../../domain/job.ts';
import { parseHttpUrl } from '../../domain/target-url.ts';
import { headerValues } from '../../net/raw-headers.ts';
import type { CdpHandlers } from './cdp-connection.ts';
import { type DocumentResponse, toDocumentResponse } from './document-response.ts';

type Paused = Protocol.Fetch.RequestPausedEvent;

/** Watches what crawls leave in the browser context of a page that others use after them. */
export interface PageTraces {
  readonly handlers: CdpHandlers;
  /** Records a request; true when it must not be answered with what an earlier crawl has stored. */
  onRequest(event: Paused): boolean;
  /** Records the response to a request. */
  onResponse(event: Paused): void;
  /** Records the challenge of a site for a user's name and password. */
  onChallenge(): void;
  /** Whether the context may keep something that a reset does not remove. */
  readonly isDoubtful: boolean;
  /** Whether the cache has to be emptied before the next crawl. */
  readonly isCacheDirty: boolean;
  /** The next crawl begins; `isCacheEmpty`: with an empty cache. */
  nextCrawl(isCacheEmpty: boolean): void;
}

/** More addresses than this are not told apart: the cache is emptied. */
const MAX_STORED = 1_000;
/** Seconds; longer than a page is lent. */
const MIN_FRESH_S = 3_600;
/** Kinds of requests whose shared responses may stay in the cache. */
const ASSETS = new Set<Protocol.Network.ResourceType>(['Stylesheet', 'Script', 'Image', 'Font']);
/** Responses with these set something in the browser other than the cache and cookies. */
const LASTING_HEADERS = new Set([
  'accept-ch',
  'alt-svc',
  'clear-site-data',
  'critical-ch',
  'nel',
  'origin-agent-cluster',
  'report-to',
  'secure-session-registration',
  'sec-session-registration',
  'service-worker-allowed',
  'speculation-rules',
  'supports-loading-mode',
  'use-as-dictionary',
]);

/**
 * Makes the watch over one context, which is for crawls of one origin. Assets stay in the cache when
 * a cache that visitors share could keep them, too (RFC 9111). Of what else is stored, the addresses are
 * noted, so that later crawls ask for it anew.
 */
export function createPageTraces(origin: string): PageTraces {
  const stored = new Set<string>();
  const storedNow = new Set<string>();
  let isDoubtful = false;
  let isCacheDirty = false;

  function recordStored(event: Paused, response: DocumentResponse): void {
    const { request, resourceType } = event;
    const cacheControl = headerValues(response.headers, 'cache-control').join().toLowerCase();
    if (request.method !== 'GET' || cacheControl.includes('no-store')) return;
    if (ASSETS.has(resourceType) && isShared(response, cacheControl)) return;
    if (URL.parse(request.url)?.origin !== origin) isCacheDirty = true;
    else storedNow.add(request.url);
  }

  return {
    handlers: {
      // A worker, or a frame in a process of its own: its requests are not seen here.
      'Target.attachedToTarget'() {
        isDoubtful = true;
      },
      'Page.frameNavigated'({ frame }) {
        const url = parseHttpUrl(frame.url);
        if (url !== undefined && url.origin !== origin) isDoubtful = true;
      },
      'Page.downloadWillBegin'() {
        isDoubtful = true;
      },
    },
    onRequest({ request }) {
      // The browser keeps the credentials that a site has accepted.
      if (/^\w+:\/\/[^/?#]*@/.test(request.url)) isDoubtful = true;
      return stored.has(request.url);
    },
    onResponse(event) {
      if (event.responseStatusCode === undefined) return;
      const response = toDocumentResponse(event);
      if (response.headers.some(([name]) => LASTING_HEADERS.has(name))) isDoubtful = true;
      if (event.responseStatusCode === 401) isDoubtful = true;
      recordStored(event, response);
    },
    onChallenge() {
      isDoubtful = true;
    },
    get isDoubtful() {
      return isDoubtful;
    },
    get isCacheDirty() {
      return isCacheDirty || stored.size + storedNow.size > MAX_STORED;
    },
    nextCrawl(isCacheEmpty) {
      if (isCacheEmpty) stored.clear();
      else for (const url of storedNow) stored.add(url);
      storedNow.clear();
      isCacheDirty = false;
    },
  };
}

/**
 * Whether the response is, by its headers, the same for all clients, and fresh for long enough that
 * no crawl revalidates it. A site could recognise the browser by the validator.
 */
function isShared({ status, headers }: DocumentResponse, cacheControl: string): boolean {
  if (status !== 200 || /private|no-cache/.test(cacheControl)) return false;
  const maxAge = Number(/max-age=(\d+)/.exec(cacheControl)?.[1] ?? 0);
  const age = Number(headerValues(headers, 'age')[0] ?? 0);
  return maxAge - age >= MIN_FRESH_S && !headers.some(isPersonal);
}

function isPersonal([name, value]: HeaderPair): boolean {
  if (name === 'set-cookie') return true;
  return name === 'vary' && /\*|cookie|authorization/i.test(value);
}
