import { constants } from 'node:http2';
import { isIPv4 } from 'node:net';
import errors from 'undici/lib/core/errors.js';
import { HttpError, type HttpFailure } from './http-client.ts';

const BY_CODE: Readonly<Record<string, HttpFailure>> = {
  EAI_AGAIN: 'name_lookup_failed',
  EAI_FAIL: 'name_lookup_failed',
  EAI_NODATA: 'name_not_found',
  EAI_NONAME: 'name_not_found',
  EMFILE: 'no_socket',
  ENFILE: 'no_socket',
  ENOBUFS: 'no_socket',
  ENODATA: 'name_not_found',
  ENOTFOUND: 'name_not_found',
  ESERVFAIL: 'name_lookup_failed',
  ETIMEDOUT: 'connect_timeout',
  ETIMEOUT: 'name_lookup_failed',
  UND_ERR_CONNECT_TIMEOUT: 'connect_timeout',
  EPROTO: 'tls_failed',
  CERT_HAS_EXPIRED: 'tls_failed',
  CERT_NOT_YET_VALID: 'tls_failed',
  CERT_REVOKED: 'tls_failed',
  CERT_UNTRUSTED: 'tls_failed',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_failed',
  HOSTNAME_MISMATCH: 'tls_failed',
  INVALID_CA: 'tls_failed',
  INVALID_PURPOSE: 'tls_failed',
  PATH_LENGTH_EXCEEDED: 'tls_failed',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_failed',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_CLOSED: 'aborted',
  UND_ERR_DESTROYED: 'aborted',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_OVERFLOW: 'protocol_error',
  UND_ERR_INVALID_ARG: 'protocol_error',
  UND_ERR_NOT_SUPPORTED: 'protocol_error',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'protocol_error',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'protocol_error',
  UND_ERR_PRX_TLS: 'proxy_failed',
  UND_ERR_PRX_CONN: 'proxy_failed',
};

const BY_PREFIX: readonly (readonly [prefix: string, failure: HttpFailure])[] = [
  ['ERR_TLS_', 'tls_failed'],
  ['ERR_SSL_', 'tls_failed'],
  ['ERR_OSSL_', 'tls_failed'],
  ['UNABLE_TO_', 'tls_failed'],
  ['CERT_', 'tls_failed'],
  ['CRL_', 'tls_failed'],
  ['ERROR_IN_', 'tls_failed'],
  ['HPE_', 'protocol_error'],
  ['ERR_HTTP2_', 'protocol_error'],
  ['ERR_INVALID_', 'protocol_error'],
];

const MESSAGES: Readonly<Record<HttpFailure, string>> = {
  address_not_allowed: 'the address is not public',
  port_not_allowed: 'the port belongs to another protocol than HTTP',
  invalid_url: 'not an absolute http or https URL',
  name_not_found: 'the name was not found',
  name_lookup_failed: 'the name servers did not answer',
  connection_failed: 'the connection failed',
  connect_timeout: 'no connection in time',
  timeout: 'no complete answer in time',
  no_socket: 'this process had no socket left',
  memory_busy: 'there was no room for the body in time',
  tls_failed: 'TLS failed',
  protocol_error: 'the answer is not valid HTTP',
  body_too_large: 'the body is too large',
  decoding_failed: 'the body does not decode',
  too_many_encodings: 'the body is encoded more than twice',
  proxy_failed: 'the proxy failed',
  proxy_refused: 'the proxy did not connect to the target',
  aborted: 'aborted',
};

/**
 * The failure with its standard text. The text includes the code of `cause` but never its message,
 * which may contain secrets.
 */
export function httpError(failure: HttpFailure, cause?: unknown): HttpError {
  const code = errorCode(cause);
  return new HttpError(failure, MESSAGES[failure] + (code === '' ? '' : ` (${code})`), { cause });
}

/** Converts any failure of an exchange. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  // Of the failures of several addresses the first counts: that address is preferred.
  if (error instanceof AggregateError && errorCode(error) === '') {
    return toHttpError(error.errors[0]);
  }
  const code = errorCode(error);
  const named =
    (lacksPort(error) ? 'no_socket' : undefined) ??
    (isRefused(error) ? 'connection_failed' : undefined) ??
    BY_CODE[code] ??
    BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1];
  const failure = named ?? (isParserError(error) ? 'protocol_error' : 'connection_failed');
  return httpError(failure, error);
}

/** Linux answers so for IPv6 on a machine without it, too, where waiting for a port is in vain. */
function lacksPort(error: unknown): boolean {
  const { address } = error as { readonly address?: unknown };
  return errorCode(error) === 'EADDRNOTAVAIL' && typeof address === 'string' && isIPv4(address);
}

/**
 * Whether a server has refused the stream of a request, or all further ones (RFC 9113, 7). Node itself
 * ends the stream of a response with too many headers by ENHANCE_YOUR_CALM.
 */
export function isRefused(error: unknown): boolean {
  if (!(error instanceof Error && 'http2ErrorCode' in error)) return false;
  const { http2ErrorCode: code } = error;
  const isCalm = code === constants.NGHTTP2_ENHANCE_YOUR_CALM;
  return (
    code === constants.NGHTTP2_REFUSED_STREAM ||
    (isCalm && errorCode(error) === 'ERR_HTTP2_SESSION_ERROR')
  );
}

// Some errors of undici's HTTP parser have no code; for 100 Continue it is that of a closed socket.
function isParserError(error: unknown): boolean {
  if (error instanceof errors.SocketError) return /^bad (response|upgrade)$/.test(error.message);
  return error instanceof errors.HTTPParserError;
}

/**
 * Why a proxy failed or refused: a status of HTTP, or a code. Undefined when it did not say, and for
 * every other failure.
 */
export function proxyDetail({ code, cause }: HttpError): string | undefined {
  const detail = code === 'proxy_failed' || code === 'proxy_refused' ? errorCode(cause) : '';
  return detail === '' ? undefined : detail;
}

/** The `code` of a system error; empty for anything else. */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
