import { parseBearer } from '../domain/header-rules.ts';
import type { AnyRequest } from '../http/node-http.ts';
import { parseTarget } from '../http/request-target.ts';

/**
 * The token of a request's headers, query or path, as far as it can be told without the routes; what
 * is at its place may be anything. A token in the message is not seen.
 */
export function presentedToken({ headers, url = '/' }: AnyRequest): string | undefined {
  const bearer = parseBearer(headers.authorization);
  if (bearer !== undefined) return bearer;
  const { path, query } = parseTarget(url);
  // Tokens consist of characters that need no escapes in a URL.
  return /(?:^|&)token=([^&]*)/.exec(query)?.[1] ?? path.split('/', 3)[2];
}
