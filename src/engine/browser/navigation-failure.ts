import type { FailureReason } from '../../domain/status.ts';
import type { FilteringProxy } from '../../net/filtering-proxy.ts';
import { bareHostname, effectivePort } from '../../net/url-parts.ts';

/** Chromium's names of errors, in the order in which they are searched for. */
const BY_NAME: readonly (readonly [pattern: RegExp, reason: FailureReason])[] = [
  [/ERR_CERT_|ERR_SSL_|ERR_BAD_SSL_|ERR_ECH_/, 'tls_failed'],
  [/ERR_TOO_MANY_REDIRECTS/, 'too_many_redirects'],
  [/ERR_CONNECTION_TIMED_OUT/, 'connect_timeout'],
  [/ERR_TIMED_OUT/, 'timeout'],
  [/ERR_CONTENT_DECODING_FAILED/, 'decoding_failed'],
  [
    /ERR_INVALID_|ERR_RESPONSE_HEADERS_|ERR_HTTP2_|ERR_INCOMPLETE_|ERR_CONTENT_LENGTH_|ERR_ABORTED/,
    'protocol_error',
  ],
  [/ERR_UNSAFE_PORT/, 'port_not_allowed'],
  [/ERR_UNSAFE_REDIRECT|ERR_UNKNOWN_URL_SCHEME|ERR_DISALLOWED_URL_SCHEME/, 'invalid_redirect'],
  [/ERR_BLOCKED_BY_/, 'address_not_allowed'],
];

/**
 * Why a page could not be opened: what the proxy knows of `at`, the last address that the browser
 * requested, else what `message`, the browser's error, says.
 */
export function navigationFailure(
  message: string,
  at: URL,
  proxy: Pick<FilteringProxy, 'failureAt' | 'isExhausted'>,
): FailureReason {
  if (proxy.isExhausted) return 'body_too_large';
  const named = BY_NAME.find(([pattern]) => pattern.test(message))?.[1];
  // These two say more than the proxy, whose failure may belong to an earlier or later request to
  // the same host.
  if (named === 'invalid_redirect' || named === 'port_not_allowed') return named;
  const known = proxy.failureAt(`${bareHostname(at)}:${effectivePort(at)}`);
  if (known !== undefined && known !== 'aborted') return known;
  return named ?? 'connection_failed';
}
