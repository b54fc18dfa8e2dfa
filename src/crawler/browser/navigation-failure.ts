import { FAILURES, type FailureReason } from '../../domain/status.ts';
import type { GuardProxy } from '../../net/guard-proxy.ts';

/** Chromium's names of what went wrong, in the order they are looked for. */
const BY_NAME: readonly (readonly [pattern: RegExp, reason: FailureReason])[] = [
  [/ERR_CERT_|ERR_SSL_|ERR_BAD_SSL_|ERR_ECH_/, 'tls_failed'],
  [/ERR_TOO_MANY_REDIRECTS/, 'too_many_redirects'],
  [/ERR_CONNECTION_TIMED_OUT/, 'connect_timeout'],
  [/ERR_TIMED_OUT|Timeout \d+ms exceeded/, 'timeout'],
  [/ERR_CONTENT_DECODING_FAILED/, 'decoding_failed'],
  [
    /ERR_INVALID_|ERR_RESPONSE_HEADERS_|ERR_HTTP2_|ERR_INCOMPLETE_|ERR_CONTENT_LENGTH_/,
    'protocol_error',
  ],
  [
    /ERR_BLOCKED_BY_|ERR_UNSAFE_PORT|ERR_DISALLOWED_URL_SCHEME|ERR_UNKNOWN_URL_SCHEME/,
    'address_not_allowed',
  ],
];

/**
 * Why a page could not be opened: what the proxy knows of the host the browser was at last, else what the browser says.
 * `download` when there is something, but nothing to show.
 */
export function navigationFailure(
  message: string,
  at: URL,
  proxy: Pick<GuardProxy, 'failureOf' | 'exhausted'>,
): FailureReason | 'download' {
  if (/Download is starting|net::ERR_ABORTED/.test(message)) return 'download';
  if (proxy.exhausted) return 'body_too_large';
  const known = failureAt(at, proxy);
  if (known !== undefined && known in FAILURES) return known as FailureReason;
  return BY_NAME.find(([pattern]) => pattern.test(message))?.[1] ?? 'connection_failed';
}

function failureAt(url: URL, proxy: Pick<GuardProxy, 'failureOf'>): string | undefined {
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  return proxy.failureOf(`${hostname}:${port}`);
}
