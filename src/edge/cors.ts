import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { requestNote } from '../http/request-note.ts';

/** How long a browser may cache a preflight, in seconds. */
const MAX_AGE_SECONDS = '7200';

/**
 * Lets pages of any origin call the API: calls carry their token themselves, never a cookie.
 * Answers OPTIONS and then returns true.
 */
export function answerCors(request: AnyRequest, response: AnyResponse): boolean {
  const isOptions = request.method === 'OPTIONS';
  if (request.headers.origin !== undefined || isOptions) {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-expose-headers', '*');
  }
  if (!isOptions) return false;
  requestNote(request).route = 'OPTIONS';
  // `*` excludes Authorization, so the requested headers are echoed.
  const requested = request.headers['access-control-request-headers'];
  response.setHeader('access-control-allow-headers', requested ?? '*');
  response.setHeader('access-control-allow-methods', 'GET, HEAD, POST, PUT, DELETE, OPTIONS');
  response.setHeader('access-control-max-age', MAX_AGE_SECONDS);
  response.statusCode = 204;
  response.end();
  return true;
}
