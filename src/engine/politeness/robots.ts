import type { Clock } from '../../domain/clock.ts';
import { inTurns, type Steps } from '../../domain/in-turns.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import { raceAbort } from '../../domain/race-abort.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { Claimant } from '../../fairness/fair-pool.ts';
import type { HttpResponse } from '../../net/http-client.ts';
import { CRAWLER_NAME } from '../http/user-agents.ts';
import { parseRobots } from './robots-rules.ts';

/** What a site's robots.txt says about one URL. */
export interface RobotsVerdict {
  readonly allowed: boolean;
  /** Its crawl-delay, 0 without one. */
  readonly delayMs: number;
  /**
   * The file could not be fetched for a transient reason, so it is not known whether the URL is
   * allowed.
   */
  readonly unknown: boolean;
  /** It is unknown because the proxy failed. */
  readonly proxyFailed?: true;
}

/** How a site is reached. */
export interface RobotsRoute {
  /** URL of a proxy. */
  readonly proxy: string | undefined;
  /** The same for proxies that stand for each other. */
  readonly name: string;
}

/** Checks URLs against the robots.txt of their sites, which it caches. */
export interface Robots {
  /** Rejects only with the signal's reason. */
  check(
    url: URL,
    route: RobotsRoute,
    signal: AbortSignal,
    claimant?: Claimant,
  ): Promise<RobotsVerdict>;
}

/** How robots.txt is fetched. */
export interface RobotsDeps {
  readonly clock: Clock;
  /** Fetches a URL and follows redirects; resolves with the reason when there is no response. */
  readonly fetch: (
    url: URL,
    proxy: string | undefined,
    maxBodyBytes: number,
    claimant: Claimant | undefined,
  ) => Promise<HttpResponse | FailureReason>;
}

/** RFC 9309, 2.4 and 2.5: a day at most, and at least 500 KiB of it. */
const KEEP_MS = 60 * 60_000;
const KEEP_UNKNOWN_MS = 60_000;
const MAX_BYTES = 512 * 1024;
const MAX_SITES = 2_000;
/** With a longer crawl-delay, a site could keep its part of a queue waiting for years. */
const MAX_DELAY_MS = 120_000;

const ALLOWED: RobotsVerdict = { allowed: true, delayMs: 0, unknown: false };
const UNKNOWN: RobotsVerdict = { allowed: false, delayMs: 0, unknown: true };
const PROXY_FAILED: RobotsVerdict = { ...UNKNOWN, proxyFailed: true };

type Rules = (url: URL) => RobotsVerdict;

/**
 * Makes an empty cache. As in RFC 9309: a response of 4xx allows everything. Without a response, or
 * with 5xx, it is unknown what is allowed. The rules that apply are those for `QueuedCrawler`, else
 * those for every crawler.
 */
export function createRobots(deps: RobotsDeps): Robots {
  const sites = createLruMap<string, { readonly rules: Promise<Rules>; until: number }>({
    maxEntries: MAX_SITES,
  });

  async function load(
    origin: string,
    proxy: string | undefined,
    claimant: Claimant | undefined,
  ): Promise<{ readonly rules: Rules; readonly keepMs: number }> {
    const url = new URL('/robots.txt', origin);
    const unknown = { rules: () => UNKNOWN, keepMs: KEEP_UNKNOWN_MS };
    const unrestricted = { rules: () => ALLOWED, keepMs: KEEP_MS };
    const response = await deps.fetch(url, proxy, MAX_BYTES, claimant);
    if (response === 'proxy_failed') return { rules: () => PROXY_FAILED, keepMs: 0 };
    if (typeof response === 'string') {
      // A file that is too large or broken counts as missing.
      return response === 'body_too_large' || response === 'decoding_failed'
        ? unrestricted
        : unknown;
    }
    if (response.status >= 500 || response.status === 429) return unknown;
    if (response.status !== 200) return unrestricted;
    const text = Buffer.from(response.body).toString('utf8');
    return { rules: await inTurns(toRules(text)), keepMs: KEEP_MS };
  }

  function rulesFor(
    origin: string,
    { proxy, name }: RobotsRoute,
    claimant: Claimant | undefined,
  ): Promise<Rules> {
    const key = `${name} ${origin}`;
    const now = deps.clock.now().getTime();
    const known = sites.get(key);
    if (known !== undefined && known.until > now) return known.rules;
    const loading = load(origin, proxy, claimant);
    const site = {
      rules: loading.then(({ rules }) => rules),
      until: now + KEEP_UNKNOWN_MS,
    };
    sites.set(key, site);
    loading.then(
      ({ keepMs }) => {
        site.until = deps.clock.now().getTime() + keepMs;
      },
      () => sites.delete(key),
    );
    return site.rules;
  }

  return {
    async check(url, route, signal, claimant) {
      // The load is shared by everyone who asks, so an abort ends only this wait.
      const rules = await raceAbort(rulesFor(url.origin, route, claimant), signal);
      return rules(url);
    },
  };
}

function* toRules(text: string): Steps<Rules> {
  const { allows, crawlDelay } = yield* parseRobots(text, CRAWLER_NAME);
  const delayMs = Math.min(crawlDelay * 1_000, MAX_DELAY_MS);
  return (url) => ({ allowed: allows(url), delayMs, unknown: false });
}
