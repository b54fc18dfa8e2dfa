import { isPossibleHost } from '../../domain/host-rules.ts';
import type { FailureReason } from '../../domain/status.ts';
import { parseHttpUrl } from '../../domain/target-url.ts';

/** A request of a chain of redirects. */
export interface Hop {
  readonly url: URL;
  readonly method: string;
  /** Whether the body, and the headers that describe it, are sent. */
  readonly withBody: boolean;
  /**
   * Whether all requests so far went to the first origin. The client's headers are sent only to
   * that one.
   */
  readonly sameOrigin: boolean;
}

/** Longest target of a redirect. Most servers refuse request lines from 8 KiB on. */
const MAX_LOCATION = 16_384;
/** Failures of addresses that the service does not request. */
export const REFUSALS: ReadonlySet<FailureReason> = new Set([
  'address_not_allowed',
  'port_not_allowed',
  'invalid_url',
]);
/** Statuses that send a client to the address in `Location`. */
export const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * The request that a response redirects to, by the rules of the Fetch Standard. After 303, and
 * after a POST with 301 or 302, it is a GET without a body. The fragment is inherited. Undefined
 * when the response is not a redirect, or its `Location` is empty. It is `invalid_redirect` when
 * the target is not an http or https URL (`file:`, `data:`), is longer than 16 KiB or has a host that
 * cannot exist.
 */
export function nextHop(
  hop: Hop,
  status: number,
  location: string | undefined,
): Hop | 'invalid_redirect' | undefined {
  if (!REDIRECT_STATUSES.has(status) || location === undefined || location === '') return undefined;
  if (location.length > MAX_LOCATION) return 'invalid_redirect';
  const url = parseHttpUrl(utf8FromLatin1(location), hop.url);
  if (url === undefined || !isPossibleHost(url.host)) return 'invalid_redirect';
  if (url.hash === '') url.hash = hop.url.hash;
  const toGet =
    (status === 303 && hop.method !== 'GET' && hop.method !== 'HEAD') ||
    ((status === 301 || status === 302) && hop.method === 'POST');
  return {
    url,
    method: toGet ? 'GET' : hop.method,
    withBody: hop.withBody && !toGet,
    sameOrigin: hop.sameOrigin && url.origin === hop.url.origin,
  };
}

// Header values are read as Latin-1, but servers that put unescaped letters into `Location` mean
// UTF-8, and browsers read it so. Bytes of another character set are sent as they came.
function utf8FromLatin1(text: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'));
  } catch {
    return text.replace(
      /[\x80-\xff]/g,
      (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  }
}
