import type { Protocol } from 'devtools-protocol';
import type { HeaderPair } from '../../domain/job.ts';
import type { FailureReason } from '../../domain/status.ts';
import { parseHttpUrl } from '../../domain/target-url.ts';
import { REDIRECT_STATUSES } from '../http/redirect.ts';
import { pageType } from '../text/page-body.ts';
import { createResourceFilter } from './blocked-resources.ts';
import { type CdpEvent, type CdpHandlers, ignoreGone } from './cdp-connection.ts';
import { type DocumentResponse, lastHeader, toDocumentResponse } from './document-response.ts';
import { documentType, isDownload } from './document-type.ts';
import type { GivenCookies } from './given-cookies.ts';
import type { PageTraces } from './page-traces.ts';
import {
  abortRequest,
  continueRequest,
  fulfillRequest,
  readResponseBody,
} from './paused-request.ts';
import type { BrowserPage } from './running-browser.ts';

/**
 * How the fetch of a document ended without a document to show: `taken`, its response is the page;
 * `failed`, there is no page.
 */
export type DocumentEnd =
  | { readonly kind: 'taken'; readonly response: DocumentResponse }
  | {
      readonly kind: 'failed';
      readonly reason: FailureReason;
      readonly response: DocumentResponse;
    };

/** The documents of one page. */
export interface PageDocuments {
  readonly handlers: CdpHandlers;
  /** To be called with events that were too long: a page may post megabytes, and must continue. */
  onDropped(event: CdpEvent, head: string): void;
  /** Has the browser pause requests, and responses with documents. */
  enable(): Promise<void>;
  /** The response of the document that is shown, or will be next. */
  readonly shown: DocumentResponse | undefined;
  /** The last redirect, while nothing has answered at the address that it names. */
  readonly redirect: DocumentResponse | undefined;
  /** The address of the last document that could not be fetched; empty for none. */
  readonly failedAt: string;
  /** The address that the page is to be sent to in place of its redirect; cleared by the call. */
  takeRedirect(): string | undefined;
  readonly end: Promise<DocumentEnd>;
}

/** How the documents of a page are fetched. */
export interface PageDocumentsDeps {
  readonly page: BrowserPage;
  /** The origin of the crawl's URL; only this one receives `headers`. */
  readonly origin: string;
  /** `request_headers`, names in lower case. */
  readonly headers: readonly HeaderPair[];
  readonly given: GivenCookies;
  readonly credentials: { readonly username: string; readonly password: string };
  readonly maxBodyBytes: number;
  /** Called with the response of each document, before its body has arrived. */
  readonly onDocument: (response: DocumentResponse) => void;
  /** `block_resources`. */
  readonly blockResources: string | undefined;
  /** Present when later crawls may use the page. */
  readonly traces: PageTraces | undefined;
  /** Whether the browser is to show pages other than HTML, for a screenshot. */
  readonly showsAll: boolean;
}

type Paused = Protocol.Fetch.RequestPausedEvent;

const HTML = /^(text\/html|application\/xhtml\+xml)(;|$)/i;
/** Types that Chromium shows. The texts that are left out are downloaded, and pictures that it cannot read, too. */
const DISPLAYABLE =
  /^\s*(text\/(?!(x-)?(csv|calendar|vcalendar|vcard|vcf|qif)\b|(comma|tab)-separated|directory|ldif|ofx|rtf|tsv)|image\/|application\/(json|xml|[\w.-]+\+(json|xml))\s*(;|$))/i;
/** Statuses of responses that have no body, whatever their headers say (Fetch Standard). */
const NULL_BODY_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Makes the handlers for the requests that a page pauses. They put the client's headers on requests
 * to the first origin, after each redirect again. They take responses other than HTML as they
 * arrive, because a browser would download them, play them or decode their text.
 */
export function createPageDocuments(deps: PageDocumentsDeps): PageDocuments {
  const { page, origin, headers, traces } = deps;
  const isBlocked = createResourceFilter(deps.blockResources);
  const hasReferrer = headers.some(([name]) => name === 'referer');
  const { promise: end, resolve: finish } = Promise.withResolvers<DocumentEnd>();
  let shown: DocumentResponse | undefined;
  let redirect: DocumentResponse | undefined;
  let failedAt = '';
  let redirectTo: string | undefined;

  async function onPaused(event: Paused): Promise<void> {
    const isMain = event.resourceType === 'Document' && event.frameId === page.frameId;
    if (event.responseErrorReason !== undefined) {
      if (isMain) failedAt = event.request.url;
      return continueRequest(page, event);
    }
    if (event.responseStatusCode === undefined) {
      if (!isMain && isBlocked(event, shown?.url ?? origin)) return abortRequest(page, event);
      if (deps.given.areWithheldFrom(event.request.url)) return withholdCookies(event);
      return continueRequest(page, event, requestHeaders(event, isMain && shown === undefined));
    }
    traces?.onResponse(event);
    if (!isMain) return continueRequest(page, event);
    const response = toDocumentResponse(event);
    deps.onDocument(response);
    const location = lastHeader(response, 'location');
    return REDIRECT_STATUSES.has(response.status) && location !== undefined && location !== ''
      ? onRedirect(event, response, location)
      : onContent(event, response);
  }

  async function withholdCookies(event: Paused): Promise<void> {
    const { resourceType, request } = event;
    if (resourceType === 'Document') await deps.given.remove();
    await continueRequest(page, event, deps.given.withhold(Object.entries(request.headers)));
  }

  /** The headers to replace those of a request; undefined to leave them. */
  function requestHeaders(event: Paused, isFirst: boolean): HeaderPair[] | undefined {
    const { request } = event;
    if (traces?.onRequest(event) === true) {
      const asNew = Object.entries(request.headers).filter(([name]) => !/^if-/i.test(name));
      return mergeHeaders(asNew, [['cache-control', 'no-cache']]);
    }
    if (headers.length === 0 || URL.parse(request.url)?.origin !== origin) return undefined;
    // The referrer of what the page itself requests is the page.
    const given = isFirst ? headers : headers.filter(([name]) => name !== 'referer');
    return mergeHeaders(Object.entries(request.headers), given);
  }

  async function onRedirect(
    event: Paused,
    response: DocumentResponse,
    location: string,
  ): Promise<void> {
    redirect = response;
    const to = parseHttpUrl(location, response.url);
    if (to === undefined) {
      if (shown === undefined) finish({ kind: 'failed', reason: 'invalid_redirect', response });
      return abortRequest(page, event);
    }
    const leavesOrigin = URL.parse(response.url)?.origin === origin && to.origin !== origin;
    if (shown !== undefined || !leavesOrigin || !hasReferrer) return continueRequest(page, event);
    // On a redirect the browser would send the client's referrer to the other origin, so the page
    // is navigated there instead.
    redirectTo = to.href;
    return abortRequest(page, event);
  }

  async function onContent(event: Paused, response: DocumentResponse): Promise<void> {
    redirect = undefined;
    const { status } = response;
    const type = documentType(response);
    const isFile = isDownload(response);
    const isEmpty = NULL_BODY_STATUSES.has(status);
    if (type !== undefined && HTML.test(type) && !isFile && !isEmpty) {
      shown = response;
      return continueRequest(page, event);
    }
    // A page that is shown stays when it leads to a file.
    const isDisplayable = DISPLAYABLE.test(type ?? '');
    if (shown !== undefined && (isFile || isEmpty || !isDisplayable)) {
      return abortRequest(page, event);
    }
    const body = isEmpty
      ? new Uint8Array(0)
      : await readResponseBody(page, event, deps.maxBodyBytes);
    if (body === undefined) {
      finish({ kind: 'failed', reason: 'body_too_large', response });
      return abortRequest(page, event);
    }
    // With its parameters, of which the charset matters.
    const given = type && lastHeader(response, 'content-type');
    const { contentType } = pageType(body, given);
    if (type === undefined && !isFile && HTML.test(contentType)) {
      shown = response;
      return fulfillRequest(page, event, { status, contentType: 'text/html', body });
    }
    const taken = { ...response, body };
    const isShown = deps.showsAll && !isFile && !isEmpty && DISPLAYABLE.test(contentType);
    if (shown !== undefined || isShown) {
      shown = taken;
      return fulfillRequest(page, event, { status, contentType: given ?? contentType, body });
    }
    finish({ kind: 'taken', response: taken });
    return abortRequest(page, event);
  }

  return {
    handlers: {
      'Fetch.requestPaused'(event) {
        onPaused(event).catch(() => {
          // The page has navigated further, or has ended.
          if (event.frameId === page.frameId) failedAt = event.request.url;
          abortRequest(page, event).catch(ignoreGone);
        });
      },
      'Fetch.authRequired'({ requestId, authChallenge: { source } }) {
        if (source !== 'Proxy') traces?.onChallenge();
        const authChallengeResponse =
          source === 'Proxy'
            ? { response: 'ProvideCredentials' as const, ...deps.credentials }
            : { response: 'Default' as const };
        page.send('Fetch.continueWithAuth', { requestId, authChallengeResponse }).catch(ignoreGone);
      },
    },
    onDropped(event, head) {
      const requestId = /^\{"method":"[\w.]+","params":\{"requestId":"([\w.-]+)"/.exec(head)?.[1];
      if (event !== 'Fetch.requestPaused' || requestId === undefined) return;
      continueRequest(page, { requestId }).catch(ignoreGone);
    },
    async enable() {
      const patterns: Protocol.Fetch.RequestPattern[] = [
        // Every request: the browser answers the proxy's challenge only for requests that were
        // paused, and it may forget the credentials at any time, when a site clears its data.
        { requestStage: 'Request' },
        { ...(traces === undefined && { resourceType: 'Document' }), requestStage: 'Response' },
      ];
      await page.send('Fetch.enable', { patterns, handleAuthRequests: true });
    },
    get shown() {
      return shown;
    },
    get redirect() {
      return redirect;
    },
    get failedAt() {
      return failedAt;
    },
    takeRedirect() {
      const to = redirectTo;
      redirectTo = undefined;
      return to;
    },
    end,
  };
}

/** The browser's headers, overridden by the given ones; cookies of both are sent. */
function mergeHeaders(
  browserHeaders: readonly HeaderPair[],
  given: readonly HeaderPair[],
): HeaderPair[] {
  const own = browserHeaders.map(([name, value]) => [name.toLowerCase(), value] as const);
  const names = new Set(given.map(([name]) => name));
  const cookies = [
    given.findLast(([name]) => name === 'cookie')?.[1],
    own.find(([name]) => name === 'cookie')?.[1],
  ];
  const cookie = cookies.filter((each) => each !== undefined).join('; ');
  return [
    ...own.filter(([name]) => !names.has(name) && name !== 'cookie'),
    ...given.filter(([name]) => name !== 'cookie'),
    ...(cookie === '' ? [] : [['cookie', cookie] as const]),
  ];
}
