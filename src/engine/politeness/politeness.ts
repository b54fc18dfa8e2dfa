import type { Clock } from '../../domain/clock.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { HttpClient } from '../../net/http-client.ts';
import { createCookies } from '../cookies.ts';
import type { CrawlTask } from '../engine.ts';
import { follow } from '../http/follow.ts';
import { createHostLimiter, HOST_BUSY } from './host-limiter.ts';
import { createRobots } from './robots.ts';

/** Whether a crawl may request its host now. */
export type CrawlAdmission =
  | {
      /** Ends the crawl; as `release` of `HostAdmission`. */
      readonly release: (slowDownMs?: number) => void;
    }
  | { readonly refused: FailureReason; readonly retryAfterMs?: number };

/** Enforces the politeness of a crawler before each of its crawls. */
export interface PolitenessGate {
  /** Rejects only with the signal's reason. */
  acquire(
    task: CrawlTask,
    url: URL,
    proxy: string | undefined,
    signal: AbortSignal,
  ): Promise<CrawlAdmission>;
}

const ROBOTS_TIMEOUT_MS = 10_000;
const UNRESTRICTED: CrawlAdmission = { release: () => undefined };

/**
 * Makes the gate, with its robots.txt cache and its limits in memory. It judges the host of the
 * pushed URL; redirects are followed as part of the same crawl, wherever they lead. A crawl-delay
 * counts when it is longer than the delay of the crawler.
 */
export function createPoliteness(deps: {
  readonly client: Pick<HttpClient, 'request'>;
  readonly clock: Clock;
}): PolitenessGate {
  const { client, clock } = deps;
  const limiter = createHostLimiter({ clock });
  const robots = createRobots({
    clock,
    async fetch(start, proxy, maxBodyBytes, claimant) {
      const { response, failure } = await follow({
        client,
        request: {
          url: start.href,
          method: 'GET',
          body: undefined,
          contentType: undefined,
          parameters: { request_headers: 'accept:text/plain,*/*;q=0.5' },
        },
        start,
        cookies: createCookies(),
        proxy,
        deadline: performance.now() + ROBOTS_TIMEOUT_MS,
        maxBodyBytes,
        signal: undefined,
        claimant,
      });
      return response ?? failure ?? 'connection_failed';
    },
  });

  return {
    async acquire(task, url, proxy, signal) {
      const { politeness, crawlerId, accountId } = task;
      if (politeness === undefined) return UNRESTRICTED;
      let { delayMs } = politeness;
      if (politeness.robotsTxt) {
        const verdict = await robots.check(url, proxy, signal, { accountId, crawlerId });
        if (verdict.unknown) return { refused: 'robots_unreachable' };
        if (!verdict.allowed) return { refused: 'robots_disallowed' };
        delayMs = Math.max(delayMs, verdict.delayMs);
      }
      const key = { crawlerId, accountId, host: url.host };
      const pace = { maxPerHost: politeness.maxPerHost, delayMs };
      const admission = await limiter.acquire(key, pace, signal);
      if (admission.admitted) return admission;
      return { refused: HOST_BUSY, retryAfterMs: admission.retryAfterMs };
    },
  };
}
