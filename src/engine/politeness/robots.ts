import type { Clock } from '../../domain/clock.ts';
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
  /** The file could not be had for a reason that may pass, so the answer is not known. */
  readonly unknown: boolean;
}

/** Answers for sites, keeping their files for a while. */
export interface Robots {
  /** `proxy` is what the site is reached through. Rejects only with the signal's reason. */
  ask(
    url: URL,
    proxy: string | undefined,
    signal: AbortSignal,
    claimant?: Claimant,
  ): Promise<RobotsVerdict>;
}

/** What robots.txt is read with. */
export interface RobotsDeps {
  readonly clock: Clock;
  /** Fetches a URL, redirects followed; resolves with the reason when there is no answer. */
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
/** A longer crawl-delay would let a site hold its part of a queue for years. */
const MAX_DELAY_MS = 120_000;

const ALLOWED: RobotsVerdict = { allowed: true, delayMs: 0, unknown: false };
const UNKNOWN: RobotsVerdict = { allowed: false, delayMs: 0, unknown: true };

type Rules = (url: URL) => RobotsVerdict;

/**
 * Makes an empty cache. As RFC 9309 has it: an answer of 4xx allows everything, none or 5xx leaves
 * it unknown, and the rules are those for `QueuedCrawler`, else for everybody.
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
    const free = { rules: () => ALLOWED, keepMs: KEEP_MS };
    const answer = await deps.fetch(url, proxy, MAX_BYTES, claimant);
    if (typeof answer === 'string') {
      // A file too large or broken is no set of rules; the same as none.
      return answer === 'body_too_large' || answer === 'decoding_failed' ? free : unknown;
    }
    if (answer.status >= 500 || answer.status === 429) return unknown;
    if (answer.status !== 200) return free;
    return { rules: rulesOf(Buffer.from(answer.body).toString('utf8')), keepMs: KEEP_MS };
  }

  function rulesFor(
    origin: string,
    proxy: string | undefined,
    claimant: Claimant | undefined,
  ): Promise<Rules> {
    const key = `${proxy ?? ''} ${origin}`;
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
    async ask(url, proxy, signal, claimant) {
      // The load is shared by everyone who asks, so an abort ends only this wait.
      const rules = await raceAbort(rulesFor(url.origin, proxy, claimant), signal);
      return rules(url);
    },
  };
}

function rulesOf(text: string): Rules {
  const { allows, crawlDelay } = parseRobots(text, CRAWLER_NAME);
  const delayMs = Math.min(crawlDelay * 1_000, MAX_DELAY_MS);
  return (asked) => ({ allowed: allows(asked), delayMs, unknown: false });
}
