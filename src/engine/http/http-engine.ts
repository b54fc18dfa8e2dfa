import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import { inTurns } from '../../domain/in-turns.ts';
import type { CrawlRequest } from '../../domain/job.ts';
import type { Logger } from '../../domain/logger.ts';
import { cookieChanges } from '../../domain/session-cookies.ts';
import { parseSuccessCodes, verdictOnAnswer, verdictOnFailure } from '../../domain/status.ts';
import { parseHttpUrl } from '../../domain/target-url.ts';
import type { HttpClient } from '../../net/http-client.ts';
import { createCookies } from '../cookies.ts';
import type { CrawlEngine, CrawlTask, Page } from '../engine.ts';
import {
  asFailedPage,
  failedPage,
  failedResponse,
  failureFields,
  withDetail,
} from '../failed-page.ts';
import { requestedDelay } from '../requested-delay.ts';
import { type FollowResult, follow } from './follow.ts';
import { type ReceivedBody, readBody } from './read-body.ts';
import { type CrawlerIdentity, packagedChromeMajor, userAgents } from './user-agents.ts';

/** What the engine crawls with, and its limits. */
export interface HttpEngineDeps {
  /** The caller closes it. */
  readonly client: Pick<HttpClient, 'request' | 'takeTraffic'>;
  readonly clock: ServiceClock;
  readonly limits: {
    /** For a whole crawl, including redirects. */
    readonly timeoutMs: number;
    /** For each body, as it arrives and decoded. */
    readonly maxBodyBytes: number;
  };
  /** Default `named`. */
  readonly identity?: CrawlerIdentity;
  readonly logger: Logger;
}

const readHere = (received: ReceivedBody) => inTurns(readBody(received));

/** Makes the engine that crawls by plain HTTP requests. */
export function createHttpEngine(deps: HttpEngineDeps): CrawlEngine {
  const { client, clock, limits, logger } = deps;
  const agents = userAgents(deps.identity ?? 'named', packagedChromeMajor());

  async function crawl(task: CrawlTask, signal: AbortSignal): Promise<Page> {
    const deadline = performance.now() + limits.timeoutMs;
    const start = parseHttpUrl(task.request.url);
    if (start === undefined) return failedPage(task, 'invalid_url');
    const { room, onSent, proxy } = task;
    const request = withUserAgent(task.request);
    const kept = (await task.session?.read()) ?? [];
    const cookies = createCookies(kept);
    const { set_cookies: given } = request.parameters;
    if (given !== undefined) cookies.give(start.href, given);
    let own = 0;
    const result = await follow({
      client,
      request,
      identity: deps.identity,
      start,
      cookies,
      proxy,
      deadline,
      maxBodyBytes: limits.maxBodyBytes,
      signal,
      room,
      onSent,
      onBytes: proxy === undefined ? undefined : (bytes) => void (own += bytes),
      claimant: { accountId: task.accountId, crawlerId: task.crawlerId },
    });
    if (proxy !== undefined) task.onTraffic?.({ ...client.takeTraffic(proxy), own });
    const changes = task.session && cookieChanges(kept, cookies.all());
    if (changes !== undefined) task.session?.change(changes);
    const page = withDetail(await toPage(task, result), result.detail);
    return { ...page, ...defined({ steps: result.steps }) };
  }

  function withUserAgent(request: CrawlRequest): CrawlRequest {
    const { user_agent: given, device = 'desktop' } = request.parameters;
    const parameters = { ...request.parameters, user_agent: given ?? agents[device] };
    return { ...request, parameters };
  }

  async function toPage(task: CrawlTask, result: FollowResult): Promise<Page> {
    const { response, failure, head } = result;
    const url = result.redirected ? result.hop.url.href : task.request.url;
    if (response === undefined) {
      const reason = failure ?? 'connection_failed';
      if (head === undefined) return failedPage(task, reason);
      return failedResponse(task, reason, { ...head, url });
    }
    const { status, headers, coded } = response;
    const isEmpty = response.body.length === 0;
    const { block, body, isUnchanged, ...shown } = await (task.readBody ?? readHere)({
      status,
      headers,
      body: response.body,
      hostname: result.hop.url.hostname,
      maxBytes: limits.maxBodyBytes,
    });
    if (body === undefined) return failedResponse(task, 'body_too_large', { status, headers, url });
    const { custom_success_codes } = task.request.parameters;
    const verdict =
      failure === undefined
        ? verdictOnAnswer({
            status,
            method: result.hop.method,
            isEmpty,
            block,
            successCodes: parseSuccessCodes(custom_success_codes),
          })
        : verdictOnFailure(failure);
    return {
      cbStatus: verdict.cbStatus,
      originalStatus: status,
      url,
      ...shown,
      body,
      ...(isUnchanged && coded !== undefined ? { coded } : {}),
      headers,
      ...failureFields(verdict, requestedDelay(response, wallNow(clock))),
    };
  }

  return {
    crawl: (task, signal) => asFailedPage(task, signal, logger, () => crawl(task, signal)),
    close: async () => undefined,
  };
}
