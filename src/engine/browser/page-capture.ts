import type { ServiceClock } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import type { FailureReason } from '../../domain/status.ts';
import { BAD_PORTS } from '../../net/bad-ports.ts';
import type { FilteringProxy } from '../../net/filtering-proxy.ts';
import { effectivePort } from '../../net/url-parts.ts';
import { type CrawlTask, MAX_REDIRECTS, type Page } from '../engine.ts';
import { failedPage, failedResponse } from '../failed-page.ts';
import { REFUSALS } from '../http/redirect.ts';
import { CdpError } from './cdp-connection.ts';
import type { DocumentResponse } from './document-response.ts';
import { navigationFailure } from './navigation-failure.ts';
import { type PageContent, toPage } from './page-content.ts';
import type { PageDocuments } from './page-documents.ts';
import { printPage } from './page-pdf.ts';
import { takeScreenshot } from './page-picture.ts';
import { readHtml } from './page-reader.ts';
import { type Budget, EndlessNavigation, runSteps, type Visit, waitForLoad } from './page-steps.ts';
import type { ResponseCookies } from './response-cookies.ts';

/** A page that is set up to be loaded. */
export interface CaptureInput extends Visit {
  readonly task: CrawlTask;
  readonly start: URL;
  readonly proxy: FilteringProxy;
  readonly documents: PageDocuments;
  /** Undefined when `Set-Cookie` is not wanted. */
  readonly cookies: ResponseCookies | undefined;
  readonly clock: ServiceClock;
  readonly maxBodyBytes: number;
  /** Time for the screenshot, after the time that `budget` leaves for the capture. */
  readonly timeLeft: Budget;
}

const NETWORK_QUIET_MS = 30_000;
const SCREENSHOT_MS = 20_000;
/** Left for the end of the crawl when the screenshot takes all of its time. */
const END_RESERVE_MS = 500;
const MAX_READS = 20;
/** Longer than any crawl: the command ends with the time limit of the crawl. */
const COMMAND_MS = 600_000;

/** Loads the page of a visit, runs the steps of its parameters and captures it. */
export async function loadAndCapture(input: CaptureInput): Promise<Page> {
  const { task, start, navigation, watch } = input;
  const failure = await load(input);
  watch.lap('navigate');
  if (failure !== undefined) {
    const { shown } = input.documents;
    if (shown?.body !== undefined) return asDownloaded(input, shown, shown.body);
    return notOpened(input, failure);
  }
  try {
    const content = await capture(input);
    const { unreachable } = navigation;
    if (unreachable !== undefined) {
      const reason = leavingFailure(input, URL.parse(unreachable) ?? start);
      return { ...notOpened(input, reason), url: unreachable };
    }
    if (content === undefined) return failedPage(task, 'connection_failed');
    const page = await toPage(task, content, input);
    watch.lap('capture');
    if (task.request.parameters.screenshot !== true) return page;
    const taken = await screenshot(input);
    watch.lap('screenshot');
    return { ...page, ...taken };
  } catch (error) {
    if (error instanceof EndlessNavigation) return failedPage(task, 'redirect_loop');
    throw error;
  }
}

/** The result of a page that was not opened. */
function notOpened({ task, documents: { redirect } }: CaptureInput, failure: FailureReason): Page {
  // What may not be requested is the fault of the response that named it.
  const isOfRedirect = REFUSALS.has(failure) || failure === 'too_many_redirects';
  return isOfRedirect && redirect !== undefined
    ? failedResponse(task, failure, redirect)
    : failedPage(task, failure);
}

/** Why the address that the page itself has led to was not opened: the browser does not tell its error. */
function leavingFailure({ documents, proxy }: CaptureInput, at: URL): FailureReason {
  const { redirect, failedAt } = documents;
  // Chromium asked it for no further address.
  if (redirect?.url === at.href && failedAt !== at.href) return 'too_many_redirects';
  if (BAD_PORTS.has(effectivePort(at))) return 'port_not_allowed';
  return navigationFailure('', at, proxy);
}

/** The page that the browser was given to show, and did not: a table (`text/csv`), for example. */
async function asDownloaded(
  input: CaptureInput,
  shown: DocumentResponse,
  bytes: Uint8Array,
): Promise<Page> {
  const response = withCookies(shown, input.cookies);
  const content = { response, bytes, isHtml: false, url: shown.url };
  return { ...(await toPage(input.task, content, input)), screenshotFailed: 'not_drawn' };
}

/** Navigates to the start; returns why that failed, if it did. */
async function load({
  page,
  task,
  documents,
  start,
  proxy,
}: CaptureInput): Promise<FailureReason | undefined> {
  let url = start.href;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const { errorText = '' } = await page.send('Page.navigate', { url }, COMMAND_MS);
    // The document was answered, so the request was sent before.
    task.onSent?.();
    if (errorText === '') return undefined;
    const redirect = documents.takeRedirect();
    if (redirect === undefined) {
      return navigationFailure(errorText, URL.parse(documents.failedAt) ?? start, proxy);
    }
    url = redirect;
  }
  return 'too_many_redirects';
}

/** What the page is after the steps of its parameters; undefined when there is nothing. */
async function capture(input: CaptureInput): Promise<PageContent | undefined> {
  const { task, quiet, budget, navigation, watch } = input;
  const { parameters } = task.request;
  await waitForLoad(input);
  watch.lap('load');
  if (parameters.ajax_wait === true) {
    await quiet.wait(budget(NETWORK_QUIET_MS));
    await waitForLoad(input);
    watch.lap('ajax_wait');
  }
  const stepFailure = await runSteps(input, parameters);
  const content = await read(input);
  if (content === undefined) return undefined;
  return { ...content, url: navigation.url || content.response.url, stepFailure };
}

/** Reads the document that is shown; again when the page navigates during that. */
async function read(
  input: CaptureInput,
): Promise<Omit<PageContent, 'url' | 'stepFailure'> | undefined> {
  const { page, documents, navigation, cookies, maxBodyBytes: maxBytes } = input;
  const { pdf, include_frames: frames } = input.task.request.parameters;
  for (let reads = 0; reads < MAX_READS; reads += 1) {
    await waitForLoad(input);
    const { shown } = documents;
    if (shown === undefined || navigation.unreachable !== undefined) return undefined;
    const response = withCookies(shown, cookies);
    if (shown.body !== undefined) return { response, bytes: shown.body, isHtml: false };
    try {
      if (pdf === true) {
        const bytes = await printPage(page, maxBytes, COMMAND_MS);
        return { response, bytes, isHtml: false, contentType: 'application/pdf' };
      }
      const reading = { maxBytes, timeoutMs: COMMAND_MS, ...defined({ frames }) };
      const bytes = await readHtml(page, reading);
      return { response: withCookies(shown, cookies), bytes, isHtml: true };
    } catch (error) {
      if (!(error instanceof CdpError) || error.kind !== 'refused') throw error;
    }
  }
  throw new EndlessNavigation('the page navigates whenever it is read');
}

/** A response with the `Set-Cookie` headers that the browser withholds from it. */
export function withCookies(
  response: DocumentResponse,
  cookies: ResponseCookies | undefined,
): DocumentResponse {
  if (cookies === undefined) return response;
  return { ...response, headers: [...response.headers, ...cookies.setCookies(response)] };
}

/** The screenshot, or why it is missing: the page is worth more than its picture. */
async function screenshot({
  page,
  task,
  device,
  timeLeft,
}: CaptureInput): Promise<Pick<Page, 'screenshot' | 'screenshotFailed'>> {
  const timeoutMs = timeLeft(SCREENSHOT_MS + END_RESERVE_MS) - END_RESERVE_MS;
  try {
    return { screenshot: await takeScreenshot(page, task.request.parameters, device, timeoutMs) };
  } catch (error) {
    const isTimeout = error instanceof CdpError && error.kind === 'timeout';
    return { screenshotFailed: isTimeout ? 'timeout' : 'not_drawn' };
  }
}
