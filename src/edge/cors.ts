import type { AnyRequest, AnyResponse } from '../http/node-http.ts';

/** How long a browser may remember a preflight, in seconds. */
const MAX_AGE_SECONDS = '7200';

/**
 * Lets pages of any origin call the API, as a console elsewhere does: calls carry their token themselves, never a cookie.
 * Answers OPTIONS by itself and then returns true.
 */
export function answerCors(request: AnyRequest, response: AnyResponse): boolean {
  const isOptions = request.method === 'OPTIONS';
  if (request.headers.origin !== undefined || isOptions) {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-expose-headers', '*');
  }
  if (!isOptions) return false;
  // The wildcard would not cover Authorization, so the wish is granted as it was made.
  const wished = request.headers['access-control-request-headers'];
  response.setHeader('access-control-allow-headers', wished ?? '*');
  response.setHeader('access-control-allow-methods', 'GET, HEAD, POST, PUT, DELETE, OPTIONS');
  response.setHeader('access-control-max-age', MAX_AGE_SECONDS);
  response.statusCode = 204;
  response.end();
  return true;
}
