import type { HttpRequest } from './http-client.ts';
import { httpError } from './http-failures.ts';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The client's own, or belonging to a connection, of which callers know nothing. */
const OWN = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Throws `protocol_error` for a method or headers that no request can have. undici would refuse them too, but only after it has set up a
 * connection for them, and with HTTP/2 in reach it then keeps all later requests to that origin waiting for that connection.
 */
export function assertSendable(request: Pick<HttpRequest, 'method' | 'headers'>): void {
  const { method, headers = [] } = request;
  const sendable =
    TOKEN.test(method) &&
    method !== 'CONNECT' &&
    headers.every(
      ([name, value]) => TOKEN.test(name) && VALUE.test(value) && !OWN.has(name.toLowerCase()),
    );
  if (!sendable) throw httpError('protocol_error');
}
