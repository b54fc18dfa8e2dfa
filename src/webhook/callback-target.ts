import type { HeaderPair } from '../domain/job.ts';
import { basicAuthorization } from '../net/url-parts.ts';

/** Where a POST goes. */
export interface CallbackTarget {
  /** Without credentials. */
  readonly url: string;
  readonly hostname: string;
  /**
   * The headers, with `Authorization: Basic` added when the callback URL has credentials and no
   * header is an `Authorization`.
   */
  withCredentials(headers: readonly HeaderPair[]): readonly HeaderPair[];
}

/** Parses a crawler's callback URL; undefined when it has none. */
export function callbackTarget(callbackUrl: string | undefined): CallbackTarget | undefined {
  const url = URL.parse(callbackUrl ?? '');
  if (url === null) return undefined;
  const authorization = basicAuthorization(url);
  url.username = '';
  url.password = '';
  return {
    url: url.href,
    hostname: url.hostname,
    withCredentials(headers) {
      const isGiven = headers.some(([name]) => name.toLowerCase() === 'authorization');
      if (authorization === undefined || isGiven) return headers;
      return [...headers, ['Authorization', authorization]];
    },
  };
}
