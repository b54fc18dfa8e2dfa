import { CONNECTION_HEADERS, HEADER_NAME, HEADER_VALUE } from '../domain/header-rules.ts';
import type { HttpRequest } from './http-client.ts';
import { httpError } from './http-failures.ts';

/**
 * Throws `protocol_error` for a method or headers that no request can have. The library undici
 * would refuse them, too, but only after it has made a connection for them. Where HTTP/2 is
 * possible, all later requests to that origin then wait for that connection.
 */
export function assertValidRequest(request: Pick<HttpRequest, 'method' | 'headers'>): void {
  const { method, headers = [] } = request;
  const sendable =
    HEADER_NAME.test(method) &&
    method !== 'CONNECT' &&
    headers.every(
      ([name, value]) =>
        HEADER_NAME.test(name) &&
        HEADER_VALUE.test(value) &&
        !CONNECTION_HEADERS.has(name.toLowerCase()),
    );
  if (!sendable) throw httpError('protocol_error');
}
