import type { Clock } from '../../domain/clock.ts';
import { inTurns, type Steps } from '../../domain/in-turns.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import { raceAbort } from '../../domain/race-abort.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { Claimant } from '../../fairness/fair-pool.ts';
import type { HttpResponse } from '../../net/http-client.ts';
import { CRAWLER_NAME } from '../http/user-agents.ts';
import { byteOrderMark } from '../text/charset.ts';
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
  /** It is unknown for a reason that any page of the site would have. */
  readonly failure?: NotOfFile;
}

type NotOfFile = (typeof NOT_OF_FILE)[number];

const NOT_OF_FILE = [
  'proxy_failed',
  'proxy_refused',
  'no_socket',
  'name_not_found',
] as const satisfies readonly FailureReason[];

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
/** Memory of their rules. Those of most sites take a few kilobytes, of a hostile one megabytes. */
const MAX_RULES_BYTES = 64 * 1024 * 1024;
/** With a longer crawl-delay, a site could keep its part of a queue waiting for years. */
const MAX_DELAY_MS = 120_000;

const ALLOWED: RobotsVerdict = { allowed: true, delayMs: 0, unknown: false };
const UNKNOWN: RobotsVerdict = { allowed: false, delayMs: 0, unknown: true };

type Rules = (url: URL) => RobotsVerdict;

interface Site {
  /** By which it is loaded. */
  readonly proxy: string | undefined;
  readonly rules: Promise<Rules>;
  until: number;
  /** Memory of the rules, 0 until they are loaded. */
  bytes: number;
}

interface Loaded {
  readonly rules: Rules;
  readonly keepMs: number;
  readonly bytes?: number;
}

/**
 * Makes an empty cache. As in RFC 9309: a response of 4xx allows everything. Without a response, or
 * with 5xx, it is unknown what is allowed. The rules that apply are those for `QueuedCrawler`, else
 * those for every crawler.
 */
export function createRobots(deps: RobotsDeps): Robots {
  const sites = createLruMap<string, Site>({ maxEntries: MAX_SITES });

  async function load(
    origin: string,
    proxy: string | undefined,
    claimant: Claimant | undefined,
  ): Promise<Loaded> {
    const url = new URL('/robots.txt', origin);
    const unknown = { rules: () => UNKNOWN, keepMs: KEEP_UNKNOWN_MS };
    const unrestricted = { rules: () => ALLOWED, keepMs: KEEP_MS };
    const response = await deps.fetch(url, proxy, MAX_BYTES, claimant);
    const failure = NOT_OF_FILE.find((reason) => reason === response);
    if (failure !== undefined) {
      // Another proxy may reach the site.
      const keepMs = failure === 'name_not_found' ? KEEP_UNKNOWN_MS : 0;
      return { rules: () => ({ ...UNKNOWN, failure }), keepMs };
    }
    if (typeof response === 'string') {
      // A file that is broken counts as missing.
      return response === 'body_too_large' || response === 'decoding_failed'
        ? unrestricted
        : unknown;
    }
    if (response.status >= 500 || response.status === 429) return unknown;
    if (response.status !== 200) return unrestricted;
    const { rules, bytes } = await inTurns(toRules(textOf(response.body)));
    return { rules, bytes, keepMs: KEEP_MS };
  }

  /** Forgets the sites that were asked about longest ago while the rules take too much. */
  function forgetOldest(): void {
    let bytes = 0;
    for (const [key, site] of Array.from(sites.entries()).reverse()) {
      bytes += site.bytes;
      if (bytes > MAX_RULES_BYTES) sites.delete(key);
    }
  }

  function rulesFor(
    origin: string,
    { proxy, name }: RobotsRoute,
    claimant: Claimant | undefined,
  ): Site {
    const key = `${name} ${origin}`;
    const now = deps.clock.now().getTime();
    const known = sites.get(key);
    if (known !== undefined && known.until > now) return known;
    const loading = load(origin, proxy, claimant);
    const site: Site = {
      proxy,
      rules: loading.then(({ rules }) => rules),
      until: now + KEEP_UNKNOWN_MS,
      bytes: 0,
    };
    sites.set(key, site);
    loading.then(
      ({ keepMs, bytes = 0 }) => {
        site.until = deps.clock.now().getTime() + keepMs;
        site.bytes = bytes;
        if (bytes > 0) forgetOldest();
      },
      () => sites.delete(key),
    );
    return site;
  }

  return {
    async check(url, route, signal, claimant) {
      // The load is shared by everyone who asks, so an abort ends only this wait.
      const site = rulesFor(url.origin, route, claimant);
      const verdict = (await raceAbort(site.rules, signal))(url);
      const ofProxy = verdict.failure === 'proxy_failed' || verdict.failure === 'proxy_refused';
      if (!ofProxy || site.proxy === route.proxy) return verdict;
      // Another proxy has failed, which says nothing of this one.
      return (await raceAbort(load(url.origin, route.proxy, claimant), signal)).rules(url);
    },
  };
}

/**
 * The whole lines of a body: a rule whose end was cut off would match more than it says. Files are UTF-8;
 * some editors write UTF-16, which its byte order mark tells.
 */
function textOf(body: Uint8Array): string {
  const text = new TextDecoder(byteOrderMark(body) ?? 'utf-8').decode(body);
  if (body.byteLength < MAX_BYTES) return text;
  return text.slice(0, 1 + Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')));
}

function* toRules(text: string): Steps<Pick<Loaded, 'rules'> & { readonly bytes: number }> {
  const { allows, crawlDelay, bytes } = yield* parseRobots(text, CRAWLER_NAME);
  const delayMs = Math.min(crawlDelay * 1_000, MAX_DELAY_MS);
  return { rules: (url) => ({ allowed: allows(url), delayMs, unknown: false }), bytes };
}
