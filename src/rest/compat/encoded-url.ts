import type { Exchange } from '../exchange.ts';
import { badValue } from '../gateway-error.ts';

/**
 * Throws a 422 GatewayError for a `url` whose own parameters are not percent-encoded, so that they
 * would count as parameters of the call, and for one that is given twice.
 */
export function assertUrlIsEncoded({ query }: Pick<Exchange, 'query'>): void {
  const parts = query.split('&');
  const at = parts.findIndex((part) => part.startsWith('url='));
  if (at < 0) return;
  const isSplit = parts[at]?.includes('?') === true && at < parts.length - 1;
  const isTwice = parts.some((part, n) => n > at && part.startsWith('url='));
  if (isSplit) throw badValue('url', 'percent-encoded, with its ? as %3F and its & as %26');
  if (isTwice) throw badValue('url', 'given once');
}
