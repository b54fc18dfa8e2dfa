import type { Protocol } from 'devtools-protocol';
import type { HeaderPair } from '../../domain/job.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { FailureReason } from '../../domain/status.ts';
import { REDIRECT_STATUSES } from '../http/redirect.ts';
import { pageBody } from '../text/page-body.ts';
import type { CdpEvent, CdpHandlers } from './cdp-connection.ts';
import { QUIET_NETWORK } from './network-quiet.ts';
import type { BrowserPage } from './running-browser.ts';

/** An answer that a page's document came with. */
export interface DocumentAnswer {
  readonly url: string;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: readonly HeaderPair[];
  /** The browser's name for the request and its redirects. */
  readonly networkId: string | undefined;
  /** Its bytes, when it is not HTML: they are the page. */
  readonly body?: Uint8Array;
}

/** How fetching a document ended without anything to show in the browser. */
export type DocumentEnd =
  | { readonly kind: 'taken'; readonly answer: DocumentAnswer }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly answer: DocumentAnswer };

/** The documents of one page. */
export interface PageDocuments {
  readonly handlers: CdpHandlers;
  /** For an event that was too long: a page may post megabytes, and goes on. */
  onDropped(event: CdpEvent, head: string): void;
  /** Has the browser ask before it fetches and shows documents. */
  enable(): Promise<void>;
  /** The answer of the document that is shown, or will be next. */
  readonly shown: DocumentAnswer | undefined;
  /** Where a document could not be fetched last; empty for nowhere. */
  readonly failedAt: string;
  /** Where the page is to be led instead of by the redirect it got, once. */
  takeRedirect(): string | undefined;
  readonly end: Promise<DocumentEnd>;
  /** The `Set-Cookie` headers of an answer, where `readsCookies` has asked for them. */
  setCookiesOf(answer: DocumentAnswer): readonly HeaderPair[];
}

/** What a page's documents are fetched with. */
export interface PageDocumentsDeps {
  readonly page: BrowserPage;
  /** Where the crawl starts; `headers` are for this origin only. */
  readonly origin: string;
  /** `request_headers`, names in lower case. */
  readonly headers: readonly HeaderPair[];
  readonly credentials: { readonly username: string; readonly password: string };
  readonly maxBodyBytes: number;
  /** Told each answer of a document, before its body has come. */
  readonly onDocument: (answer: DocumentAnswer) => void;
  /** Whether `Set-Cookie` is wanted, which costs the browser's network events. */
  readonly readsCookies: boolean;
  /** Whether what is not HTML is shown, too, for a picture. */
  readonly showsAll: boolean;
}

type Paused = Protocol.Fetch.RequestPausedEvent;

const PIECE_BYTES = 256 * 1024;
/** A site may take its time; the crawl's own limit ends the page. */
const LONGEST_MS = 600_000;
const MAX_ANSWERS = 200;
const HTML = /^\s*(text\/html|application\/xhtml\+xml)\s*(;|$)/i;
/** What a browser shows as it is. */
const SHOWN = /^\s*(text\/|image\/|application\/(json|xml|[\w.-]+\+(json|xml))\s*(;|$))/i;

/**
 * Stands between the browser and what it fetches, so far as that is the crawl's: puts the client's
 * headers on requests to the first origin, on each redirect anew; takes answers that are not HTML
 * as they are, for a browser would download them, play them, or decode their text.
 */
export function createPageDocuments(deps: PageDocumentsDeps): PageDocuments {
  const { page, origin, headers } = deps;
  const given = new Map(headers);
  const { promise: end, resolve: finish } = Promise.withResolvers<DocumentEnd>();
  let shown: DocumentAnswer | undefined;
  let failedAt = '';
  let leadsTo: string | undefined;
  /** `Set-Cookie` of the last answer to each request, the newest last. */
  const cookies = createLruMap<string, string>({ maxEntries: MAX_ANSWERS });

  async function onPaused(event: Paused): Promise<void> {
    const isMain = event.resourceType === 'Document' && event.frameId === page.frameId;
    const isAnswer =
      event.responseStatusCode !== undefined || event.responseErrorReason !== undefined;
    if (!isAnswer) return goOn(event, headersOf(event, isMain && shown === undefined));
    if (event.responseErrorReason !== undefined) {
      if (isMain) failedAt = event.request.url;
      return goOn(event);
    }
    if (!isMain) return goOn(event);
    const answer = answerOf(event);
    deps.onDocument(answer);
    return onAnswer(event, answer);
  }

  async function onAnswer(event: Paused, answer: DocumentAnswer): Promise<void> {
    const { status } = answer;
    const type = valueOf(answer, 'content-type');
    const location = valueOf(answer, 'location');
    if (REDIRECT_STATUSES.has(status) && location !== undefined) {
      const to = URL.parse(location, answer.url);
      if (to === null || !/^https?:$/.test(to.protocol)) {
        if (shown === undefined) finish({ kind: 'failed', reason: 'invalid_redirect', answer });
        return stop(event);
      }
      const leaves = URL.parse(answer.url)?.origin === origin && to.origin !== origin;
      if (shown !== undefined || !leaves || !given.has('referer')) return goOn(event);
      // On a redirect, the browser would not part with the referrer it was given.
      leadsTo = to.href;
      return stop(event);
    }
    const isFile = /^\s*attachment\b/i.test(valueOf(answer, 'content-disposition') ?? '');
    const isEmpty = status === 204 || status === 205;
    if (type !== undefined && HTML.test(type) && !isFile && !isEmpty) {
      shown = answer;
      return goOn(event);
    }
    // A page that goes on to a file stays what it is.
    if (shown !== undefined && (isFile || isEmpty || !SHOWN.test(type ?? ''))) return stop(event);
    const body = isEmpty ? new Uint8Array(0) : await bodyOf(event);
    if (body === undefined) {
      finish({ kind: 'failed', reason: 'body_too_large', answer });
      return stop(event);
    }
    const shape = pageBody(body, type);
    if (type === undefined && !isFile && HTML.test(shape.contentType)) {
      shown = answer;
      return show(event, body, 'text/html');
    }
    const taken = { ...answer, body };
    if (shown !== undefined || (deps.showsAll && !isFile && SHOWN.test(shape.contentType))) {
      shown = taken;
      return show(event, body, type ?? shape.contentType);
    }
    finish({ kind: 'taken', answer: taken });
    return stop(event);
  }

  /** The headers of a request; undefined for those it has. */
  function headersOf({ request }: Paused, isFirst: boolean): HeaderPair[] | undefined {
    if (given.size === 0 || URL.parse(request.url)?.origin !== origin) return undefined;
    // What the page itself asks for has the page for its referrer.
    const mine = headers.filter(([name]) => name !== 'cookie' && (isFirst || name !== 'referer'));
    const names = new Set(mine.map(([name]) => name));
    const own = Object.entries(request.headers).map(
      ([name, value]) => [name.toLowerCase(), value] as const,
    );
    const cookies = [given.get('cookie'), own.find(([name]) => name === 'cookie')?.[1]];
    const cookie = cookies.filter((each) => each !== undefined).join('; ');
    return [
      ...own.filter(([name]) => !names.has(name) && name !== 'cookie'),
      ...mine,
      ...(cookie === '' ? [] : [['cookie', cookie] as const]),
    ];
  }

  async function goOn({ requestId }: Paused, changed?: readonly HeaderPair[]): Promise<void> {
    await page.send('Fetch.continueRequest', {
      requestId,
      ...(changed === undefined
        ? {}
        : { headers: changed.map(([name, value]) => ({ name, value })) }),
    });
  }

  async function stop({ requestId }: Paused): Promise<void> {
    await page.send('Fetch.failRequest', { requestId, errorReason: 'Aborted' });
  }

  async function show(event: Paused, body: Uint8Array, contentType: string): Promise<void> {
    await page.send('Fetch.fulfillRequest', {
      requestId: event.requestId,
      responseCode: event.responseStatusCode ?? 200,
      responseHeaders: [{ name: 'content-type', value: contentType }],
      body: Buffer.from(body).toString('base64'),
    });
  }

  /** Undefined when it is longer than pages may be. */
  async function bodyOf({ requestId }: Paused): Promise<Uint8Array | undefined> {
    const { stream: handle } = await page.send('Fetch.takeResponseBodyAsStream', { requestId });
    const pieces: Buffer[] = [];
    let length = 0;
    for (;;) {
      const piece = await page.send('IO.read', { handle, size: PIECE_BYTES }, LONGEST_MS);
      const bytes = Buffer.from(piece.data, piece.base64Encoded === true ? 'base64' : 'utf8');
      length += bytes.length;
      pieces.push(bytes);
      if (length > deps.maxBodyBytes) break;
      if (piece.eof) return Buffer.concat(pieces);
    }
    await page.send('IO.close', { handle });
    return undefined;
  }

  return {
    handlers: {
      'Network.responseReceivedExtraInfo'({ requestId, headers: all }) {
        if (!deps.readsCookies) return;
        const [, value = ''] =
          Object.entries(all).find(([name]) => name.toLowerCase() === 'set-cookie') ?? [];
        cookies.set(requestId, value);
      },
      'Fetch.requestPaused'(event) {
        onPaused(event).catch(() => {
          // The page has gone on, or has ended.
          if (event.frameId === page.frameId) failedAt = event.request.url;
          stop(event).catch(ignoreGone);
        });
      },
      'Fetch.authRequired'({ requestId, authChallenge: { source } }) {
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
      page.send('Fetch.continueRequest', { requestId }).catch(ignoreGone);
    },
    async enable() {
      const patterns: Protocol.Fetch.RequestPattern[] = [
        // All: the browser answers the proxy's question for those only which have been asked about,
        // and may forget the answer at any time, when a site has it clear its data.
        { requestStage: 'Request' },
        { resourceType: 'Document', requestStage: 'Response' },
      ];
      await page.send('Fetch.enable', { patterns, handleAuthRequests: true });
      if (deps.readsCookies) await page.send('Network.enable', QUIET_NETWORK);
    },
    get shown() {
      return shown;
    },
    get failedAt() {
      return failedAt;
    },
    takeRedirect() {
      const to = leadsTo;
      leadsTo = undefined;
      return to;
    },
    end,
    setCookiesOf: ({ networkId }) =>
      (cookies.get(networkId ?? '') ?? '')
        .split('\n')
        .filter((value) => value !== '')
        .map((value) => ['set-cookie', value]),
  };
}

function answerOf(event: Paused): DocumentAnswer {
  const headers = (event.responseHeaders ?? []).map(
    ({ name, value }) => [name.toLowerCase(), value] as const,
  );
  return {
    url: event.request.url,
    status: event.responseStatusCode ?? 0,
    headers,
    networkId: event.networkId,
  };
}

/** The last of that name. */
export function valueOf(answer: DocumentAnswer, name: string): string | undefined {
  return answer.headers.findLast(([each]) => each === name)?.[1];
}

function ignoreGone(): void {
  // The request, or the page, is no more.
}
