import type { Clock } from '../../domain/clock.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { HttpClient } from '../../net/http-client.ts';
import { createCookies } from '../cookies.ts';
import type { CrawlTask } from '../engine.ts';
import { follow } from '../http/follow.ts';
import { HOST_BUSY, type HostLimiter } from './host-limiter.ts';
import { createRobots } from './robots.ts';

/** Whether a crawl may ask its host now. */
export type Entry =
  | { readonly leave: (slowDownMs?: number) => void }
  | { readonly refused: FailureReason; readonly retryAfterMs?: number };

/** Keeps a crawler's politeness before each crawl. */
export interface PolitenessGate {
  /** Rejects only with the signal's reason. */
  enter(task: CrawlTask, url: URL, proxy: string | undefined, signal: AbortSignal): Promise<Entry>;
}

const ROBOTS_TIMEOUT_MS = 10_000;
const UNRESTRICTED: Entry = { leave: () => undefined };

/**
 * Makes the entry. Politeness is of the host a URL was pushed for; hosts it redirects to are asked
 * as part of the same visit. A crawl-delay counts when it is longer than the crawler's own delay.
 */
export function createPoliteness(deps: {
  readonly client: Pick<HttpClient, 'request'>;
  readonly clock: Clock;
  readonly gate: HostLimiter;
}): PolitenessGate {
  const { client, clock, gate } = deps;
  const robots = createRobots({
    clock,
    async fetch(start, proxy, maxBodyBytes, claimant) {
      const arrival = await follow({
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
      return arrival.answer ?? arrival.failure ?? 'connection_failed';
    },
  });

  return {
    async enter(task, url, proxy, signal) {
      const { politeness, crawlerId, accountId } = task;
      if (politeness === undefined) return UNRESTRICTED;
      let { delayMs } = politeness;
      if (politeness.robotsTxt) {
        const verdict = await robots.ask(url, proxy, signal, { accountId, crawlerId });
        if (verdict.unknown) return { refused: 'robots_unreachable' };
        if (!verdict.allowed) return { refused: 'robots_disallowed' };
        delayMs = Math.max(delayMs, verdict.delayMs);
      }
      const key = { crawlerId, accountId, host: url.host };
      const admission = await gate.enter(
        key,
        { maxPerHost: politeness.maxPerHost, delayMs },
        signal,
      );
      if (!admission.admitted) {
        return { refused: HOST_BUSY, retryAfterMs: admission.retryAfterMs };
      }
      return { leave: (slowDownMs) => admission.leave(slowDownMs) };
    },
  };
}
