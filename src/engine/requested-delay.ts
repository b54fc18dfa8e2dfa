import { parseRetryAfter } from '../domain/retry-after.ts';
import type { HttpResponse } from '../net/http-client.ts';
import { headerValues } from '../net/raw-headers.ts';

/**
 * Milliseconds that a response with 429 or 503 asks to wait (`Retry-After`); undefined for others.
 */
export function requestedDelay(
  { status, headers }: Pick<HttpResponse, 'status' | 'headers'>,
  now: Date,
): number | undefined {
  if (status !== 429 && status !== 503) return undefined;
  return parseRetryAfter(headerValues(headers, 'retry-after')[0], now);
}
