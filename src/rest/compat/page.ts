import { toHeaderText } from '../../domain/header-rules.ts';
import type { ResultFields } from '../../domain/result-fields.ts';

/**
 * Clients of the reference read how many requests their plan leaves; here none is counted, so there
 * are always plenty.
 */
export const REMAINING_REQUESTS = 1_000_000;

/** Node's HTTP client, for one, takes 16 KiB of headers by default. */
const MAX_CHARACTERS = 13_000;

/** The fields as response headers, safe to send; `pushed_url` only when there is room for it. */
export function toHeaders(fields: ResultFields): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) headers[name] = toHeaderText(String(value));
  }
  const characters = Object.values(headers).reduce((sum, value) => sum + value.length, 0);
  if (characters > MAX_CHARACTERS) delete headers['pushed_url'];
  return headers;
}
