import type { BrowserContext, Page as BrowserPage, Request, Response } from 'playwright-core';
import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import { parseRetryAfter } from '../../domain/retry-after.ts';
import {
  type FailureReason,
  parseSuccessCodes,
  type StatusVerdict,
  verdictOnAnswer,
  verdictOnFailure,
} from '../../domain/status.ts';
import type { AddressGuard } from '../../net/address-guard.ts';
import { type GuardProxy, type GuardProxyDeps, startGuardProxy } from '../../net/guard-proxy.ts';
import type { HttpClient } from '../../net/http-client.ts';
import type { Lookup } from '../../net/lookup.ts';
import type { CrawlEngine, CrawlTask, Page } from '../crawler.ts';
import { departureOf, failedPage, failureOf, withoutThrowing } from '../failed-page.ts';
import { createHostGate } from '../host-gate.ts';
import { recogniseObstacle } from '../http/obstacles.ts';
import { pageBody } from '../http/page-body.ts';
import { createPoliteEntry } from '../http/polite-entry.ts';
import { parseRequestHeaders } from '../http/request-headers.ts';
import { type BrowserPool, BrowserUnavailable } from './browser-pool.ts';
import { createBrowserSessions } from './browser-sessions.ts';
import { deviceOptions } from './devices.ts';
import { navigationFailure } from './navigation-failure.ts';
import { type Budget, interact, settle, takePicture } from './page-steps.ts';

/** What the engine works with. */
export interface BrowserEngineDeps {
  readonly pool: BrowserPool;
  /** Crawls what a browser would download instead of showing. */
  readonly http: CrawlEngine;
  /** Reads robots.txt. */
  readonly client: Pick<HttpClient, 'request'>;
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  /** What proxies are asked to connect to; default `address`. */
  readonly proxyTarget?: 'address' | 'name';
  /** Told of every connection that a page was refused for where it led. */
  readonly onRefused?: GuardProxyDeps['onRefused'];
  readonly clock: Clock;
  readonly limits: {
    /** Of a whole crawl, from when it has its browser page. */
    readonly timeoutMs: number;
    /** Of the page; all it loads together may be three times that. */
    readonly maxBodyBytes: number;
  };
  /** Proxy URLs by ISO country, and `tor`. */
  readonly proxies: Readonly<Record<string, string>>;
  readonly logger: Logger;
}

/** The answers that the page itself came with. */
interface Documents {
  last: Response | undefined;
  /** Where the last failed; empty for nowhere. */
  failedAt: string;
}

const PARTS_OF_A_PAGE = 3;
/** Left for taking the page once its waits are over. */
const TAKING_MS = 5_000;

/** Makes the engine that crawls in Chromium: each crawl in a context and behind a guarding proxy of its own. */
export function createBrowserEngine(deps: BrowserEngineDeps): CrawlEngine {
  const { pool, clock, limits, proxies, logger } = deps;
  const sessions = createBrowserSessions({ clock });
  const entry = createPoliteEntry({ client: deps.client, clock, gate: createHostGate({ clock }) });

  async function crawl(task: CrawlTask, signal: AbortSignal): Promise<Page> {
    const departure = departureOf(task.request, proxies);
    if ('refused' in departure) return failedPage(task, departure.refused);
    const { start, proxy: upstream } = departure;
    const admission = await entry.enter(task, start, upstream, signal);
    if ('refused' in admission) return failedPage(task, admission.refused, admission.retryAfterMs);
    let page: Page | undefined;
    try {
      page = await visit(task, start, upstream, signal);
      return page;
    } finally {
      admission.leave(task.politeness === undefined ? 0 : page?.failure?.retryAfterMs);
    }
  }

  async function visit(
    task: CrawlTask,
    start: URL,
    upstream: string | undefined,
    signal: AbortSignal,
  ): Promise<Page> {
    await using proxy = await startGuardProxy({
      guard: deps.guard,
      lookup: deps.lookup,
      maxBytes: limits.maxBodyBytes * PARTS_OF_A_PAGE,
      maxAnswerBytes: limits.maxBodyBytes,
      torProxy: proxies['tor'],
      proxyTarget: deps.proxyTarget,
      onRefused: deps.onRefused,
      claimant: { accountId: task.accountId, crawlerId: task.crawlerId },
      ...(upstream === undefined ? {} : { upstream }),
    });
    await using lent = await pool.lend(
      {
        ...deviceOptions(task.request.parameters),
        proxy: { server: proxy.url },
        acceptDownloads: false,
        permissions: [],
      },
      signal,
    );
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(limits.timeoutMs)]);
    const documents: Documents = { last: undefined, failedAt: '' };
    const isCut = (): boolean => proxy.exhausted || proxy.hasCut(documents.last?.url() ?? '');
    const looking = () => look(task, start, lent.context, proxy, documents);
    const seen = await withinTime(deadline, looking).catch((error: unknown) => {
      if (isCut()) return undefined;
      throw error;
    });
    signal.throwIfAborted();
    // Whatever a page that was cut off ends with, this is why.
    if (isCut()) return failedPage(task, 'body_too_large');
    if (seen === undefined) return failedPage(task, 'timeout');
    return seen === 'download' ? deps.http.crawl(task, signal) : seen;
  }

  /** Loads the page, does what was asked, and takes it. */
  async function look(
    task: CrawlTask,
    start: URL,
    context: BrowserContext,
    proxy: GuardProxy,
    documents: Documents,
  ): Promise<Page | 'download'> {
    const { parameters } = task.request;
    const endsAt = performance.now() + limits.timeoutMs;
    const budget: Budget = (most) =>
      Math.max(Math.min(most, endsAt - performance.now() - TAKING_MS), 1);
    await prepare(task, start, context);
    const page = await context.newPage();
    const crashed = new Promise<'crashed'>((resolve) => {
      page.once('crash', () => resolve('crashed'));
    });
    watchDocuments(page, context, documents);
    const loaded = load(page, start, budget, proxy, documents);
    const failure = await Promise.race([loaded, crashed]);
    if (failure === 'download') return 'download';
    if (failure === 'crashed') return failedPage(task, 'page_crashed');
    if (failure !== undefined) return failedPage(task, failure);
    const taken = take(task, page, documents, budget);
    // When the page crashes first, nobody waits for this any more.
    taken.catch(() => undefined);
    const result = await Promise.race([taken, crashed]);
    if (result === 'crashed') return failedPage(task, 'page_crashed');
    if (parameters.cookies_session !== undefined) {
      sessions.keep(task.accountId, parameters.cookies_session, await context.cookies());
    }
    return result;
  }

  async function prepare(task: CrawlTask, start: URL, context: BrowserContext): Promise<void> {
    const {
      set_cookies: given,
      cookies_session: session,
      request_headers,
    } = task.request.parameters;
    if (session !== undefined) {
      await context.addCookies([...sessions.cookies(task.accountId, session)]);
    }
    const cookies = (given ?? '').split(';').flatMap((pair) => {
      const [name = '', ...value] = pair.split('=');
      if (name.trim() === '') return [];
      return [{ name: name.trim(), value: value.join('=').trim(), url: start.origin }];
    });
    if (cookies.length > 0) await context.addCookies(cookies);
    const headers = parseRequestHeaders(request_headers);
    if (headers.length > 0) {
      // For the site itself: what it loads from elsewhere is not told.
      await context.route(
        (url) => url.origin === start.origin,
        (route, request) =>
          route.continue({ headers: { ...request.headers(), ...Object.fromEntries(headers) } }),
      );
    }
  }

  async function take(
    task: CrawlTask,
    page: BrowserPage,
    documents: Documents,
    budget: Budget,
  ): Promise<Page> {
    const { parameters } = task.request;
    await settle(page, parameters, budget);
    const clicked = await interact(page, parameters, budget);
    const response = documents.last;
    if (response === undefined) return failedPage(task, 'connection_failed');
    const screenshot =
      parameters.screenshot === true ? await takePicture(page, parameters, budget) : undefined;
    const headers = (await response.headersArray()).map(
      ({ name, value }) => [name.toLowerCase(), value] as const,
    );
    const contentType = headers.findLast(([name]) => name === 'content-type')?.[1];
    const isPage = /^(text\/html|application\/xhtml\+xml)\b|^$/i.test(contentType ?? '');
    const bytes = isPage ? Buffer.from(await page.content()) : await response.body();
    const shown = isPage
      ? { body: bytes, contentType: 'text/html; charset=utf-8', isText: true }
      : pageBody(bytes, contentType);
    const verdict = verdictOf(task, response, headers, bytes, clicked);
    const status = response.status();
    const [, wish] = headers.find(([name]) => name === 'retry-after') ?? [];
    const retryAfterMs =
      status === 429 || status === 503 ? parseRetryAfter(wish, clock.now()) : undefined;
    const tooLarge = bytes.length > limits.maxBodyBytes;
    return {
      cbStatus: verdict.cbStatus,
      originalStatus: status,
      url: page.url() === 'about:blank' ? response.url() : page.url(),
      ...shown,
      ...(tooLarge ? { body: new Uint8Array(0) } : {}),
      headers,
      ...(screenshot === undefined ? {} : { screenshot }),
      ...failureOf(verdict, retryAfterMs),
    };
  }

  function verdictOf(
    task: CrawlTask,
    response: Response,
    headers: readonly (readonly [string, string])[],
    body: Uint8Array,
    clicked: boolean,
  ): StatusVerdict {
    if (body.length > limits.maxBodyBytes) return verdictOnFailure('body_too_large');
    if (!clicked) return verdictOnFailure('selector_not_found');
    const status = response.status();
    return verdictOnAnswer({
      status,
      method: 'GET',
      isEmpty: isEmptyPage(body),
      obstacle: recogniseObstacle({ status, headers: new Map(headers), body }),
      successCodes: parseSuccessCodes(task.request.parameters.custom_success_codes),
    });
  }

  return {
    crawl: (task, signal) =>
      withoutThrowing(task, signal, logger, () =>
        crawl(task, signal).catch((error: unknown) => {
          if (error instanceof BrowserUnavailable) return failedPage(task, 'browser_unavailable');
          throw error;
        }),
      ),
    close: () => pool.close(),
  };
}

/** Goes to the address; why it did not get there, `download` for what a browser does not show. */
async function load(
  page: BrowserPage,
  start: URL,
  budget: Budget,
  proxy: GuardProxy,
  documents: Documents,
): Promise<FailureReason | 'download' | undefined> {
  try {
    await page.goto(start.href, { waitUntil: 'commit', timeout: budget(Number.MAX_SAFE_INTEGER) });
    return undefined;
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    return navigationFailure(message, URL.parse(documents.failedAt) ?? start, proxy);
  }
}

/** Follows the answers that the page itself came with, and closes what it opens beside itself. */
function watchDocuments(page: BrowserPage, context: BrowserContext, seen: Documents): void {
  page.on('requestfailed', (request) => {
    if (isDocumentOf(request, page)) seen.failedAt = request.url();
  });
  page.on('response', (response) => {
    if (isDocumentOf(response.request(), page) && !isRedirect(response.status())) {
      seen.last = response;
    }
  });
  page.on('dialog', (dialog) => void dialog.dismiss().catch(() => undefined));
  context.on('page', (other) => {
    if (other !== page) void other.close().catch(() => undefined);
  });
}

function isDocumentOf(request: Request, page: BrowserPage): boolean {
  try {
    return request.isNavigationRequest() && request.frame() === page.mainFrame();
  } catch {
    // The frame of a request that is older than its frame cannot be told.
    return false;
  }
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

/** Chromium makes a document of nothing, too. */
function isEmptyPage(body: Uint8Array): boolean {
  if (body.length > 200) return false;
  const text = Buffer.from(body).toString();
  return text.replace(/<!doctype[^>]*>|<\/?(html|head|body)>|\s/gi, '') === '';
}

/** The work's end; undefined when the signal comes first. */
async function withinTime<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const onAbort = (): void => resolve(undefined);
  signal.addEventListener('abort', onAbort, { once: true });
  const working = work();
  // After the signal nobody waits for it; closing the page makes it fail.
  working.catch(() => undefined);
  try {
    return await Promise.race([working, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
