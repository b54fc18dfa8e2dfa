import type { DeliveryHeader, StatusSpelling } from '../domain/callback-headers.ts';
import type { Delivery } from '../domain/delivery.ts';
import { toHeaderUrl, withinRoom } from '../domain/header-rules.ts';
import type { HeaderPair } from '../domain/job.ts';
import { type ReportedResult, type ResultField, resultFields } from '../domain/result-fields.ts';
import { headerValue } from './header-value.ts';

const STATUS_SPELLINGS: ReadonlyMap<string, StatusSpelling> = new Map([
  ['cb_status', 'CB-Status'],
  ['pc_status', 'PC-Status'],
  ['original_status', 'Original-Status'],
]);

/** Fields whose headers have names that no push can set, see `create-webhook.ts`. */
const OTHER_HEADERS: ReadonlySet<string> = new Set([
  'batch',
  'again_of',
  'crawled_at',
  'rung',
  'climbed',
]);

/** The other fields that every delivery reports; their lengths are bounded. */
const ALWAYS: ReadonlySet<string> = new Set(['rid', 'url', 'metadata']);

/**
 * The headers that report a result: the statuses in both spellings, `rid`, `url`, `metadata`, then the push's
 * `callback_headers`, and of the result's other fields those for which there is room.
 */
export function deliveryHeaders(
  delivery: Pick<Delivery, 'details' | 'callbackHeaders'> & ReportedResult,
): HeaderPair[] {
  const always: DeliveryHeader[] = [];
  const withRoom: DeliveryHeader[] = [];
  for (const [name, value] of Object.entries(resultFields(delivery, delivery.details))) {
    if (value === undefined || OTHER_HEADERS.has(name)) continue;
    const text = name === 'url' ? toHeaderUrl(String(value)) : headerValue(String(value));
    const header = [name as ResultField, text] as const;
    const spelling = STATUS_SPELLINGS.get(name);
    if (spelling !== undefined) always.push(header, [spelling, header[1]]);
    else if (ALWAYS.has(name)) always.push(header);
    else withRoom.push(header);
  }
  return withinRoom([...always, ...delivery.callbackHeaders], withRoom);
}
