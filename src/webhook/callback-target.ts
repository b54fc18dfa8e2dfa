import type { Crawler } from '../domain/crawler.ts';
import type { HeaderPair } from '../domain/job.ts';
import { basicAuthorization } from '../net/url-parts.ts';

/** Where a POST goes. */
export interface CallbackTarget {
  /** Without credentials. */
  readonly url: URL;
  /**
   * The headers, with `Authorization: Basic` added when the callback URL has credentials and no
   * header is an `Authorization`.
   */
  withCredentials(headers: readonly HeaderPair[]): readonly HeaderPair[];
}

/** Targets by crawler, because each delivery needs its crawler's. */
const targets = new WeakMap<Crawler, CallbackTarget>();

/** Parses a crawler's callback URL; undefined when it has none. */
export function callbackTarget(crawler: Crawler): CallbackTarget | undefined {
  const known = targets.get(crawler);
  if (known !== undefined) return known;
  const target = parseTarget(crawler.callbackUrl);
  if (target !== undefined) targets.set(crawler, target);
  return target;
}

function parseTarget(callbackUrl: string | undefined): CallbackTarget | undefined {
  const url = URL.parse(callbackUrl ?? '');
  if (url === null) return undefined;
  const authorization = basicAuthorization(url);
  url.username = '';
  url.password = '';
  return {
    url,
    withCredentials(headers) {
      if (authorization === undefined) return headers;
      const isGiven = headers.some(([name]) => name.toLowerCase() === 'authorization');
      if (isGiven) return headers;
      return [...headers, ['Authorization', authorization]];
    },
  };
}
