import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import { parseRetryAfter } from '../../domain/retry-after.ts';
import { parseSuccessCodes, verdictOnAnswer, verdictOnFailure } from '../../domain/status.ts';
import type { HttpClient } from '../../net/http-client.ts';
import { type Cookies, createCookieSessions, createCookies } from '../cookies.ts';
import type { CrawlEngine, CrawlTask, Page, ProcessBody } from '../engine.ts';
import {
  asFailedPage,
  failedAnswer,
  failedPage,
  failureOf,
  resolveTarget,
} from '../failed-page.ts';
import { createHostLimiter } from '../politeness/host-limiter.ts';
import { createPoliteness } from '../politeness/politeness.ts';
import { pageBody } from '../text/page-body.ts';
import { detectBlock } from './block-pages.ts';
import { type FollowResult, follow, valuesOf } from './follow.ts';

/** What the engine works with. */
export interface HttpEngineDeps {
  readonly client: Pick<HttpClient, 'request'>;
  readonly clock: Clock;
  readonly limits: {
    /** Of a whole crawl, redirects included. */
    readonly timeoutMs: number;
    /** Of each body, as it arrives and decoded. */
    readonly maxBodyBytes: number;
  };
  /** Proxy URLs by ISO country, and `tor`. */
  readonly proxies: Readonly<Record<string, string>>;
  readonly logger: Logger;
}

const runAtOnce: ProcessBody = async (_bodyBytes, work) => work();

/**
 * Makes the engine that crawls by plain HTTP requests. It holds cookie sessions, host queues and
 * robots.txt in memory. The client is its maker's to close.
 */
export function createHttpEngine(deps: HttpEngineDeps): CrawlEngine {
  const { client, clock, limits, proxies, logger } = deps;
  const sessions = createCookieSessions({ clock });
  const entry = createPoliteness({ client, clock, gate: createHostLimiter({ clock }) });

  async function crawl(task: CrawlTask, signal: AbortSignal): Promise<Page> {
    const { request, politeness } = task;
    const deadline = performance.now() + limits.timeoutMs;
    const departure = resolveTarget(request, proxies);
    if ('refused' in departure) return failedPage(task, departure.refused);
    const { start, proxy } = departure;

    const admission = await entry.enter(task, start, proxy, signal);
    if ('refused' in admission) return failedPage(task, admission.refused, admission.retryAfterMs);
    let page: Page | undefined;
    try {
      const cookies = cookiesOf(task, start);
      const { maxBodyBytes } = limits;
      const { room, process = runAtOnce } = task;
      const arrival = await follow({
        client,
        request,
        start,
        cookies,
        proxy,
        deadline,
        maxBodyBytes,
        signal,
        room,
        claimant: { accountId: task.accountId, crawlerId: task.crawlerId },
      });
      page = await process(arrival.answer?.body.byteLength ?? 0, () => toPage(task, arrival));
      return page;
    } finally {
      const slowDownMs = politeness === undefined ? 0 : page?.failure?.retryAfterMs;
      admission.leave(slowDownMs);
    }
  }

  function cookiesOf({ accountId, request }: CrawlTask, start: URL): Cookies {
    const { cookies_session: session, set_cookies: given } = request.parameters;
    const cookies =
      session === undefined || session === '' ? createCookies() : sessions.open(accountId, session);
    if (given !== undefined) cookies.give(start.href, given);
    return cookies;
  }

  function toPage(task: CrawlTask, arrival: FollowResult): Page {
    const { answer, failure } = arrival;
    const url = arrival.redirected ? arrival.hop.url.href : task.request.url;
    if (answer === undefined) {
      const reason = failure ?? 'connection_failed';
      const { head } = arrival;
      return head === undefined
        ? failedPage(task, reason)
        : failedAnswer(task, reason, { ...head, url });
    }
    const { status, headers } = answer;
    const { body, contentType, isText } = pageBody(
      answer.body,
      valuesOf(answer, 'content-type').at(-1),
    );
    // Text grows when its character set becomes UTF-8.
    if (body.byteLength > limits.maxBodyBytes) {
      return failedAnswer(task, 'body_too_large', { status, headers, url });
    }
    const verdict =
      failure === undefined
        ? verdictOnAnswer({
            status,
            method: arrival.hop.method,
            isEmpty: answer.body.length === 0,
            block: detectBlock({ status, headers: new Map(headers), body: answer.body }),
            successCodes: parseSuccessCodes(task.request.parameters.custom_success_codes),
          })
        : verdictOnFailure(failure);
    const wish =
      status === 429 || status === 503
        ? parseRetryAfter(valuesOf(answer, 'retry-after')[0], clock.now())
        : undefined;
    return {
      cbStatus: verdict.cbStatus,
      originalStatus: status,
      url,
      body,
      contentType,
      isText,
      headers,
      ...failureOf(verdict, wish),
    };
  }

  return {
    crawl: (task, signal) => asFailedPage(task, signal, logger, () => crawl(task, signal)),
    close: async () => undefined,
  };
}
