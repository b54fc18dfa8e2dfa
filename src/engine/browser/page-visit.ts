import type { ServiceClock } from '../../domain/clock.ts';
import { type CrawlStep, startStopwatch } from '../../domain/job-try.ts';
import { cookieChanges } from '../../domain/session-cookies.ts';
import type { CrawlTask, Page } from '../engine.ts';
import { failedResponse } from '../failed-page.ts';
import { parseRequestHeaders } from '../http/request-headers.ts';
import type { CrawlerIdentity } from '../http/user-agents.ts';
import { type CdpHandlers, ignoreGone } from './cdp-connection.ts';
import { createDevice } from './devices.ts';
import type { DocumentResponse } from './document-response.ts';
import { createGivenCookies, type GivenCookies } from './given-cookies.ts';
import { joinHandlers } from './join-handlers.ts';
import { createNetworkQuiet, QUIET_NETWORK } from './network-quiet.ts';
import { createOpenedWindows } from './opened-windows.ts';
import { type CaptureInput, loadAndCapture, withCookies } from './page-capture.ts';
import { toPage } from './page-content.ts';
import { addCookies, parseGivenCookies, readCookies } from './page-cookies.ts';
import { createPageDocuments, type PageDocumentsDeps } from './page-documents.ts';
import type { PageLoan } from './page-lender.ts';
import { createPageNavigation } from './page-navigation.ts';
import { setUpOther, setUpPage } from './page-setup.ts';
import type { Budget, Visit } from './page-steps.ts';
import { createResponseCookies } from './response-cookies.ts';
import type { BrowserPage } from './running-browser.ts';

/** The visit of one crawl to its page. */
export interface PageVisit {
  /** The response of the last document; undefined before the first one. */
  readonly document: DocumentResponse | undefined;
  /** Whether the page was captured, not only the response of a document. */
  readonly isCaptured: boolean;
  /** What took how long so far. */
  steps(): readonly CrawlStep[];
  /** Loads the page, runs the steps of its parameters and captures it. */
  run(page: BrowserPage): Promise<Page>;
}

/** A crawl in the browser. */
export interface VisitInput {
  readonly task: CrawlTask;
  readonly start: URL;
  /** The page that is lent to the crawl, and the proxy that it uses. */
  readonly loan: Pick<PageLoan, 'proxy' | 'isUsed' | 'traces' | 'handlers'>;
  /** Aborted when the visit is over, whatever the page still does. */
  readonly ended: AbortSignal;
}

/** What visits share. */
export interface PageVisitDeps {
  readonly clock: ServiceClock;
  readonly limits: { readonly timeoutMs: number; readonly maxBodyBytes: number };
  readonly identity: CrawlerIdentity;
}

/** Time that the waits of a visit leave for the capture; less for crawls with a short limit. */
const CAPTURE_RESERVE_MS = 5_000;
const CAPTURE_RESERVE_SHARE = 0.25;

/** Makes a visit; the time of the crawl starts now. */
export function createPageVisit(deps: PageVisitDeps, input: VisitInput): PageVisit {
  const { clock, limits, identity } = deps;
  const { task, start } = input;
  const { proxy } = input.loan;
  const { maxBodyBytes } = limits;
  const endsAt = performance.now() + limits.timeoutMs;
  const reserveMs = Math.min(CAPTURE_RESERVE_MS, limits.timeoutMs * CAPTURE_RESERVE_SHARE);
  const timeLeft: Budget = (mostMs) => Math.max(Math.min(mostMs, endsAt - performance.now()), 1);
  const budget: Budget = (mostMs) =>
    Math.max(Math.min(mostMs, endsAt - performance.now() - reserveMs), 1);
  let document: DocumentResponse | undefined;
  let isCaptured = false;
  const watch = startStopwatch();

  return {
    steps: () => watch.steps(),
    get document() {
      return document;
    },
    get isCaptured() {
      return isCaptured;
    },
    async run(page) {
      const opened = await open(page, input, {
        identity,
        budget,
        watch,
        maxBodyBytes,
        onDocument: (response) => {
          document = response;
        },
      });
      const { session } = task;
      const before = (await session?.read()) ?? [];
      const given = parseGivenCookies(start, task.request.parameters.set_cookies);
      const cookies = [...before, ...given];
      opened.given.add(cookies.filter(({ origin }) => origin !== undefined));
      await addCookies(page, cookies);
      watch.lap('page');
      const capturing = loadAndCapture({
        ...opened,
        task,
        start,
        proxy,
        clock,
        maxBodyBytes,
        timeLeft,
      });
      // When a document ends the visit first, the page is closed while it is still captured.
      const captured = capturing.then((result) => {
        isCaptured = true;
        return result;
      });
      captured.catch(ignoreGone);
      const result = await Promise.race([
        endOfDocuments(task, opened, { clock, maxBodyBytes }),
        captured,
      ]);
      const changes = session && cookieChanges(before, opened.given.mark(await readCookies(page)));
      if (changes !== undefined) session?.change(changes);
      return result;
    },
  };
}

type OpenedPage = Visit &
  Pick<CaptureInput, 'documents' | 'cookies'> & { readonly given: GivenCookies };

/** Sets a new page up for its visit, with handlers for its events. */
async function open(
  page: BrowserPage,
  { task, start, loan, ended }: VisitInput,
  options: Pick<PageDocumentsDeps, 'maxBodyBytes' | 'onDocument'> &
    Pick<PageVisitDeps, 'identity'> &
    Pick<Visit, 'budget' | 'watch'>,
): Promise<OpenedPage> {
  const { parameters } = task.request;
  const { budget, watch, maxBodyBytes, onDocument } = options;
  const headers = parseRequestHeaders(parameters.request_headers);
  const browser = { identity: options.identity, version: page.browserVersion };
  const device = createDevice(parameters, browser, headers);
  const navigation = createPageNavigation(page.frameId);
  const quiet = createNetworkQuiet(page, navigation);
  const cookies = parameters.get_cookies === true ? createResponseCookies() : undefined;
  const given = createGivenCookies(page);
  const documents = createPageDocuments({
    page,
    given,
    origin: start.origin,
    headers,
    credentials: loan.proxy.credentials,
    blockResources: parameters.block_resources,
    traces: loan.traces,
    maxBodyBytes,
    showsAll: parameters.screenshot === true,
    onDocument,
  });
  const dialogs: CdpHandlers = {
    'Page.javascriptDialogOpening': ({ type }) => {
      // Dialogs are dismissed; only the question whether to leave the page is answered with yes.
      const accept = type === 'beforeunload';
      page.send('Page.handleJavaScriptDialog', { accept }).catch(ignoreGone);
    },
  };
  const waitsForRest = parameters.screenshot === true || parameters.pdf === true;
  const windows = createOpenedWindows();
  const opened = { documents, cookies, given, windows, waitsForRest };
  page.listen(
    joinHandlers(
      loan.handlers,
      documents.handlers,
      quiet.handlers,
      navigation.handlers,
      cookies?.handlers,
      windows.handlers,
      dialogs,
    ),
    documents.onDropped,
  );
  const waitsForNetwork =
    parameters.ajax_wait === true ||
    parameters.scroll === true ||
    parameters.css_click_selector !== undefined;
  page.setUpOthers({
    setUp(type, send) {
      setUpOther(type, send, device);
      if (waitsForNetwork) send('Network.enable', QUIET_NETWORK);
    },
    handlers: waitsForNetwork ? quiet.handlers : {},
  });
  const visit = { page, navigation, quiet, device, budget, watch, ended, ...opened };
  if (loan.isUsed) return visit;
  await Promise.all([setUpPage(page, device), documents.enable()]);
  // Network events cost the browser time, so they are enabled only where they are needed.
  if (waitsForNetwork || cookies !== undefined) await quiet.enable();
  return visit;
}

/** The page of a visit that ends with a document that is not shown. */
async function endOfDocuments(
  task: CrawlTask,
  { documents, cookies }: OpenedPage,
  options: { readonly clock: ServiceClock; readonly maxBodyBytes: number },
): Promise<Page> {
  const end = await documents.end;
  if (end.kind === 'failed') return failedResponse(task, end.reason, end.response);
  const { body, url } = end.response;
  const response = withCookies(end.response, cookies);
  const page = await toPage(task, { response, bytes: body, isHtml: false, url }, options);
  const wantsPicture = task.request.parameters.screenshot === true;
  return wantsPicture ? { ...page, screenshotFailed: 'not_drawn' } : page;
}
