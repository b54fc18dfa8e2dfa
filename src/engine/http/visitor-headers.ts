import type { HeaderPair } from '../../domain/job.ts';
import { userAgentHints } from '../browser/user-agent-hints.ts';

/** The order and the spelling in which the browser sends the headers of a page over HTTP/1.1. */
const ORDER = [
  'sec-ch-ua',
  'sec-ch-ua-mobile',
  'sec-ch-ua-platform',
  'Upgrade-Insecure-Requests',
  'User-Agent',
  'Accept-Language',
  'Accept',
  'Sec-Fetch-Site',
  'Sec-Fetch-Mode',
  'Sec-Fetch-User',
  'Sec-Fetch-Dest',
  'Accept-Encoding',
  'Cookie',
];
const PLACES = new Map(ORDER.map((name, at) => [name.toLowerCase(), { name, at }]));

/**
 * What the browser that `userAgent` names sends to ask for a page, names in lower case; undefined for
 * a browser other than Chromium. Client hints and `sec-fetch-*` are for secure origins, as are the
 * codings br and zstd.
 */
export function visitorHeaders(userAgent: string, url: URL): HeaderPair[] | undefined {
  const { metadata } = userAgentHints(userAgent, '');
  if (metadata === undefined) return undefined;
  const isSecure = isTrustworthy(url);
  const { brands = [], mobile, platform } = metadata;
  const list = brands.map(({ brand, version }) => `"${brand}";v="${version}"`).join(', ');
  const hints: HeaderPair[] = [
    ['sec-ch-ua', list],
    ['sec-ch-ua-mobile', mobile ? '?1' : '?0'],
    ['sec-ch-ua-platform', `"${platform}"`],
  ];
  const fetched: HeaderPair[] = [
    ['sec-fetch-site', 'none'],
    ['sec-fetch-mode', 'navigate'],
    ['sec-fetch-user', '?1'],
    ['sec-fetch-dest', 'document'],
  ];
  return [
    ...(isSecure ? hints : []),
    ['upgrade-insecure-requests', '1'],
    ['user-agent', userAgent],
    [
      'accept',
      'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7',
    ],
    ...(isSecure ? fetched : []),
    ['accept-encoding', isSecure ? 'gzip, deflate, br, zstd' : 'gzip, deflate'],
  ];
}

/** The headers as the browser orders and spells them; those that it does not send come last. */
export function asVisitor(headers: readonly HeaderPair[]): HeaderPair[] {
  const place = ([name]: HeaderPair): number => PLACES.get(name)?.at ?? ORDER.length;
  return headers
    .toSorted((left, right) => place(left) - place(right))
    .map(([name, value]) => [PLACES.get(name)?.name ?? titled(name), value]);
}

const titled = (name: string): string =>
  name.replace(/(^|-)[a-z]/g, (letters) => letters.toUpperCase());

/** Whether Chromium counts the origin as secure (https://w3c.github.io/webappsec-secure-contexts/#is-origin-trustworthy). */
function isTrustworthy({ protocol, hostname }: URL): boolean {
  return (
    protocol === 'https:' ||
    hostname === '[::1]' ||
    /^127\.\d+\.\d+\.\d+$/.test(hostname) ||
    /(^|\.)localhost$/.test(hostname)
  );
}
