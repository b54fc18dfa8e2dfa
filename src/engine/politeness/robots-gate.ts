import type { Clock } from '../../domain/clock.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { HttpClient } from '../../net/http-client.ts';
import { createCookies } from '../cookies.ts';
import type { CrawlTask } from '../engine.ts';
import { follow } from '../http/follow.ts';
import { createRobots, type RobotsRoute } from './robots.ts';

/** What robots.txt says about a crawl. */
export type RobotsAnswer =
  | {
      /** Least time between two requests at the host, 0 for none. */
      readonly delayMs: number;
    }
  | { readonly refused: FailureReason };

/** Asks robots.txt before each crawl of a crawler that wants it. */
export interface RobotsGate {
  /** Rejects only with the signal's reason. */
  check(
    task: Pick<CrawlTask, 'crawlerId' | 'accountId'>,
    url: URL,
    route: RobotsRoute,
    signal: AbortSignal,
  ): Promise<RobotsAnswer>;
}

const ROBOTS_TIMEOUT_MS = 10_000;

/**
 * Makes the gate, with its cache of robots.txt files in memory. It judges the pushed URL; redirects
 * are followed as part of the same crawl, wherever they lead.
 */
export function createRobotsGate(deps: {
  readonly client: Pick<HttpClient, 'request'>;
  readonly clock: Clock;
}): RobotsGate {
  const { client, clock } = deps;
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
        cutsBody: true,
        signal: undefined,
        claimant,
      });
      return response ?? failure ?? 'connection_failed';
    },
  });

  return {
    async check({ accountId, crawlerId }, url, route, signal) {
      const verdict = await robots.check(url, route, signal, { accountId, crawlerId });
      if (verdict.unknown) return { refused: verdict.failure ?? 'robots_unreachable' };
      return verdict.allowed ? { delayMs: verdict.delayMs } : { refused: 'robots_disallowed' };
    },
  };
}
