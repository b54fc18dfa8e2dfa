import { toHeaderText, toHeaderUrl, withinRoom } from '../../domain/header-rules.ts';
import type { HeaderPair } from '../../domain/job.ts';
import type { ResultFields } from '../../domain/result-fields.ts';

/**
 * Clients of the reference read how many requests their plan leaves; here none is counted, so there
 * are always plenty.
 */
export const REMAINING_REQUESTS = 1_000_000;

/**
 * The fields as response headers, safe to send: `pushed_url` and the target's headers only while
 * there is room for them.
 */
export function toHeaders(fields: ResultFields): Record<string, string> {
  const always: HeaderPair[] = [];
  const others: HeaderPair[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const isOptional =
      name === 'pushed_url' || (name.startsWith('original_') && name !== 'original_status');
    const text = name === 'url' ? toHeaderUrl(String(value)) : toHeaderText(String(value));
    (isOptional ? others : always).push([name, text]);
  }
  return Object.fromEntries(withinRoom(always, others));
}
