import {
  CONNECTION_HEADERS,
  HEADER_NAME,
  HEADER_VALUE,
  splitHeaderList,
} from '../../domain/header-rules.ts';
import type { CrawlRequest, HeaderPair } from '../../domain/job.ts';
import type { Hop } from './redirect.ts';
import type { CrawlerIdentity } from './user-agents.ts';
import { asVisitor, visitorHeaders } from './visitor-headers.ts';

/**
 * The client's headers that other origins receive after a redirect. Everything else is only for the
 * origin that the client named, because any header may be a credential there.
 */
const FOR_EVERY_ORIGIN = new Set(['accept', 'accept-language', 'user-agent']);

/**
 * Parses `request_headers` (`name:value|name2:value2`). Invalid and forbidden headers are skipped;
 * a push with such headers was refused already.
 */
export function parseRequestHeaders(text: string | undefined): HeaderPair[] {
  const pairs: HeaderPair[] = [];
  for (const [name, value] of splitHeaderList(text ?? '')) {
    const isHeader = HEADER_NAME.test(name) && HEADER_VALUE.test(value);
    if (isHeader && !CONNECTION_HEADERS.has(name.toLowerCase()))
      pairs.push([name.toLowerCase(), value]);
  }
  return pairs;
}

/**
 * The headers of one request of a crawl: those that browsers send, overridden by the ones that the
 * URL was pushed with. `cookies`, the value of a `Cookie` header or empty, is added to a `Cookie`
 * among them. Of a `visitor` they are all that the browser sends that the user agent names, in its
 * order and spelling.
 */
export function requestHeaders(
  request: CrawlRequest,
  hop: Hop,
  cookies: string,
  identity: CrawlerIdentity = 'named',
): HeaderPair[] {
  const { parameters } = request;
  const { user_agent: userAgent = '' } = parameters;
  const visitor = identity === 'visitor' ? visitorHeaders(userAgent, hop.url) : undefined;
  const headers = new Map<string, string>([
    ...(parameters.user_agent === undefined
      ? []
      : [['user-agent', parameters.user_agent] as const]),
    ['accept', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
    ['accept-language', 'en-US,en;q=0.9'],
    ...(visitor ?? []),
  ]);
  for (const [name, value] of parseRequestHeaders(parameters.request_headers)) {
    if (hop.sameOrigin || FOR_EVERY_ORIGIN.has(name)) headers.set(name, value);
  }
  if (hop.withBody) {
    headers.set('content-type', request.contentType ?? 'application/x-www-form-urlencoded');
  } else {
    headers.delete('content-type');
  }
  const given = headers.get('cookie');
  const all = [given, cookies].filter((each) => each !== undefined && each !== '').join('; ');
  if (all !== '') headers.set('cookie', all);
  // Jobs that were queued by an earlier version may hold a `user_agent` that no header can carry.
  const sent = [...headers].filter(([, value]) => HEADER_VALUE.test(value));
  return visitor === undefined ? sent : asVisitor(sent);
}
