import type { Clock } from '../../domain/clock.ts';
import { parseRetryAfter } from '../../domain/retry-after.ts';
import {
  type FailureReason,
  parseSuccessCodes,
  type StatusVerdict,
  verdictOnAnswer,
  verdictOnFailure,
} from '../../domain/status.ts';
import type { FilteringProxy } from '../../net/filtering-proxy.ts';
import type { CrawlTask, Page } from '../engine.ts';
import { failedPage, failedResponse, failureFields } from '../failed-page.ts';
import { detectBlock } from '../http/block-pages.ts';
import { parseRequestHeaders } from '../http/request-headers.ts';
import { pageBody } from '../text/page-body.ts';
import type { BrowserSessions } from './browser-sessions.ts';
import { CdpError } from './cdp-connection.ts';
import { deviceOf } from './devices.ts';
import { navigationFailure } from './navigation-failure.ts';
import { createNetworkQuiet } from './network-quiet.ts';
import { cookiesOf, giveCookies } from './page-cookies.ts';
import { createPageDocuments, type DocumentAnswer, valueOf } from './page-documents.ts';
import { createPageNavigation } from './page-navigation.ts';
import { takePicture } from './page-picture.ts';
import { readHtml } from './page-reader.ts';
import { setUpPage } from './page-setup.ts';
import { type Budget, EndlessNavigation, interact, settle, type Visit } from './page-steps.ts';
import type { BrowserPage } from './running-browser.ts';

/** The visit of one crawl to its page. */
export interface PageVisit {
  /** The answer of the document the browser has got last. */
  readonly document: DocumentAnswer | undefined;
  /** Loads the page, does what was asked, and takes it. */
  run(page: BrowserPage): Promise<Page>;
}

/** Begins visits. */
export interface PageVisits {
  begin(task: CrawlTask, start: URL, proxy: FilteringProxy): PageVisit;
}

/** What was brought back of a document. */
interface Content {
  readonly answer: DocumentAnswer;
  /** Undefined when it is longer than pages may be. */
  readonly bytes: Uint8Array | undefined;
  readonly isHtml: boolean;
}

/** Left for taking the page once its waits are over, out of a whole crawl of any length. */
const TAKING_MS = 5_000;
const TAKING_SHARE = 0.25;
const PICTURE_MS = 20_000;
/** Left for ending the crawl when its picture does not come. */
const ENDING_MS = 500;
const MAX_READS = 20;
/** As many redirects as a browser follows. */
const MAX_LED = 20;
/** Of a command whose time the crawl's own limit ends. */
const LONGEST_MS = 600_000;

/** Makes the visits of one engine. */
export function createPageVisits(deps: {
  readonly clock: Clock;
  readonly limits: { readonly timeoutMs: number; readonly maxBodyBytes: number };
  readonly sessions: BrowserSessions;
}): PageVisits {
  const { clock, limits, sessions } = deps;
  const takingMs = Math.min(TAKING_MS, limits.timeoutMs * TAKING_SHARE);

  function begin(task: CrawlTask, start: URL, proxy: FilteringProxy): PageVisit {
    const { parameters } = task.request;
    const endsAt = performance.now() + limits.timeoutMs;
    const budget: Budget = (most) =>
      Math.max(Math.min(most, endsAt - performance.now() - takingMs), 1);
    const left = (most: number): number => Math.max(Math.min(most, endsAt - performance.now()), 1);
    let document: DocumentAnswer | undefined;

    async function run(page: BrowserPage): Promise<Page> {
      const given = parseRequestHeaders(parameters.request_headers);
      const device = deviceOf(parameters, given);
      const navigation = createPageNavigation(page.frameId);
      const quiet = createNetworkQuiet(page, navigation);
      const documents = createPageDocuments({
        page,
        origin: start.origin,
        headers: given,
        credentials: proxy.credentials,
        maxBodyBytes: limits.maxBodyBytes,
        readsCookies: parameters.get_cookies === true,
        showsAll: parameters.screenshot === true,
        onDocument: (answer) => {
          document = answer;
        },
      });
      page.listen(
        {
          ...documents.handlers,
          ...navigation.handlers,
          ...quiet.handlers,
          'Page.frameNavigated'(params) {
            quiet.handlers['Page.frameNavigated']?.(params);
            navigation.handlers['Page.frameNavigated']?.(params);
          },
          'Page.javascriptDialogOpening': ({ type }) => {
            // Whoever is asked whether to leave leaves.
            const accept = type === 'beforeunload';
            page.send('Page.handleJavaScriptDialog', { accept }).catch(ignoreGone);
          },
        },
        documents.onDropped,
      );
      await Promise.all([setUpPage(page, device), documents.enable()]);
      if (parameters.ajax_wait === true || parameters.css_click_selector !== undefined) {
        await quiet.enable();
      }
      const session = parameters.cookies_session;
      const before = session === undefined ? [] : sessions.cookies(task.accountId, session);
      await giveCookies(page, start, before, parameters.set_cookies);

      const visit: Visit = { page, navigation, quiet, device, budget };
      const ended = documents.end.then((end) =>
        end.kind === 'failed'
          ? failedResponse(task, end.reason, end.answer)
          : pageOf(
              { answer: withCookies(end.answer), bytes: end.answer.body, isHtml: false },
              end.answer.url,
              true,
            ),
      );
      const looking = look(visit);
      // What was taken instead ends the page that is looked at.
      looking.catch(ignoreGone);
      const result = await Promise.race([ended, looking]);
      if (session !== undefined) {
        sessions.keep(task.accountId, session, before, await cookiesOf(page));
      }
      return result;

      function withCookies(answer: DocumentAnswer): DocumentAnswer {
        return { ...answer, headers: [...answer.headers, ...documents.setCookiesOf(answer)] };
      }

      async function look(of: Visit): Promise<Page> {
        const failure = await load(of);
        if (failure !== undefined) return failedPage(task, failure);
        try {
          return await takeWhole(of);
        } catch (error) {
          if (error instanceof EndlessNavigation) return failedPage(task, 'redirect_loop');
          throw error;
        }
      }

      /** Goes to the address; why it did not get there. */
      async function load(of: Visit): Promise<FailureReason | undefined> {
        let url: string | undefined = start.href;
        for (let led = 0; led < MAX_LED; led += 1) {
          const { errorText = '' }: { errorText?: string } = await of.page.send(
            'Page.navigate',
            { url },
            LONGEST_MS,
          );
          if (errorText === '') return undefined;
          url = documents.takeRedirect();
          if (url !== undefined) continue;
          return navigationFailure(errorText, URL.parse(documents.failedAt) ?? start, proxy);
        }
        return 'too_many_redirects';
      }

      async function takeWhole(of: Visit): Promise<Page> {
        await settle(of);
        if (parameters.ajax_wait === true) {
          await quiet.wait(budget(QUIET_MS));
          await settle(of);
        }
        const clicked = await interact(of, parameters);
        const content = await read(of);
        const lost = navigation.unreachable;
        if (lost !== undefined) {
          const reason = navigationFailure('', URL.parse(lost) ?? start, proxy);
          return { ...failedPage(task, reason), url: lost };
        }
        if (content === undefined) return failedPage(task, 'connection_failed');
        const shown = pageOf(content, navigation.url || content.answer.url, clicked);
        return parameters.screenshot === true ? { ...shown, ...(await picture()) } : shown;
      }

      /**
       * What the page is now; follows it when it goes on meanwhile. Undefined when there is
       * nothing.
       */
      async function read(of: Visit): Promise<Content | undefined> {
        for (let tries = 0; tries < MAX_READS; tries += 1) {
          await settle(of);
          const answer = documents.shown;
          if (answer === undefined || navigation.unreachable !== undefined) return undefined;
          if (answer.body !== undefined) {
            return { answer: withCookies(answer), bytes: answer.body, isHtml: false };
          }
          try {
            const bytes = await readHtml(page, limits.maxBodyBytes, LONGEST_MS);
            return { answer: withCookies(answer), bytes, isHtml: true };
          } catch (error) {
            if (!(error instanceof CdpError) || error.kind !== 'refused') throw error;
          }
        }
        throw new EndlessNavigation('The page goes on whenever it is read');
      }

      async function picture(): Promise<Pick<Page, 'screenshot' | 'screenshotFailed'>> {
        try {
          return {
            screenshot: await takePicture(
              page,
              parameters,
              device,
              left(PICTURE_MS + ENDING_MS) - ENDING_MS,
            ),
          };
        } catch (error) {
          // The page is worth more than its picture.
          const reason = error instanceof CdpError ? error.kind : 'page_crashed';
          return { screenshotFailed: reason === 'timeout' ? 'timeout' : 'not_drawn' };
        }
      }
    }

    function pageOf({ answer, bytes, isHtml }: Content, url: string, clicked: boolean): Page {
      const { status, headers } = answer;
      const body = bytes ?? new Uint8Array(0);
      const shape = isHtml
        ? { body, contentType: 'text/html; charset=utf-8', isText: true }
        : pageBody(body, valueOf(answer, 'content-type'));
      const verdict = verdictOf(task, answer, bytes, clicked);
      const retryAfterMs =
        status === 429 || status === 503
          ? parseRetryAfter(headers.find(([name]) => name === 'retry-after')?.[1], clock.now())
          : undefined;
      return {
        cbStatus: verdict.cbStatus,
        originalStatus: status,
        url,
        ...shape,
        headers,
        ...failureFields(verdict, retryAfterMs),
      };
    }

    return {
      get document() {
        return document;
      },
      run,
    };
  }

  return { begin };
}

/** Longest wait for a page that never gets quiet. */
const QUIET_MS = 30_000;

function verdictOf(
  task: CrawlTask,
  { status, headers }: DocumentAnswer,
  body: Uint8Array | undefined,
  clicked: boolean,
): StatusVerdict {
  if (body === undefined) return verdictOnFailure('body_too_large');
  if (!clicked) return verdictOnFailure('selector_not_found');
  return verdictOnAnswer({
    status,
    method: 'GET',
    isEmpty: isEmptyPage(body),
    block: detectBlock({ status, headers: new Map(headers), body }),
    successCodes: parseSuccessCodes(task.request.parameters.custom_success_codes),
  });
}

/** Chromium makes a document of nothing, too. */
function isEmptyPage(body: Uint8Array): boolean {
  if (body.length > 200) return false;
  const text = Buffer.from(body).toString();
  return text.replace(/<!doctype[^>]*>|<\/?(html|head|body)>|\s/gi, '') === '';
}

function ignoreGone(): void {
  // The page has ended.
}
