import type { Exchange } from '../exchange.ts';
import { badValue } from '../gateway-error.ts';
import { percentDecoded } from '../query-string.ts';

/**
 * Throws a 422 GatewayError for a `url` whose own parameters are not percent-encoded, so that they
 * would count as parameters of the call, and for one that is given twice. So it does for one whose
 * escapes are not UTF-8: they were meant for the target, and another URL would be crawled.
 */
export function assertUrlIsEncoded({ query }: Pick<Exchange, 'query'>): void {
  const parts = query.split('&');
  const at = parts.findIndex((part) => part.startsWith('url='));
  if (at < 0) return;
  const isSplit = parts[at]?.includes('?') === true && at < parts.length - 1;
  const isTwice = parts.some((part, n) => n > at && part.startsWith('url='));
  if (isSplit) throw badValue('url', 'percent-encoded, with its ? as %3F and its & as %26');
  if (isTwice) throw badValue('url', 'given once');
  if (losesBytes(parts[at] ?? '')) throw badValue('url', 'percent-encoded, with its % as %25');
}

/** Whether bytes of an encoded text become U+FFFD when it is decoded. */
function losesBytes(text: string): boolean {
  return !/%EF%BF%BD/i.test(text) && percentDecoded(text).includes('\u{FFFD}');
}
