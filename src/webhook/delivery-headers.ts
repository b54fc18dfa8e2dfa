import type { Delivery } from '../domain/delivery.ts';
import type { HeaderPair } from '../domain/job.ts';
import { resultFields } from '../domain/result-fields.ts';
import { headerValue } from './header-value.ts';

/**
 * Fields are added while all headers stay below this. With a request line of the longest callback
 * URL the whole head is then within the 16 KiB that node's HTTP server takes by default.
 */
const MAX_CHARACTERS = 13_000;

/** Of each status its second spelling: some proxies drop names with underscores. */
const STATUS_SPELLINGS: ReadonlyMap<string, string> = new Map([
  ['cb_status', 'CB-Status'],
  ['pc_status', 'PC-Status'],
  ['original_status', 'Original-Status'],
]);

/**
 * The headers that report a result: the statuses in both spellings, `rid`, `url`, then the push's
 * `callback_headers`, and of the result's other fields those for which there is room.
 */
export function deliveryHeaders(delivery: Delivery): HeaderPair[] {
  const always: HeaderPair[] = [];
  const withRoom: HeaderPair[] = [];
  for (const [name, value] of Object.entries(resultFields(delivery, delivery.details))) {
    if (value === undefined) continue;
    const header = [name, headerValue(String(value))] as const;
    const spelling = STATUS_SPELLINGS.get(name);
    if (spelling !== undefined) always.push(header, [spelling, header[1]]);
    else if (name === 'rid' || name === 'url') always.push(header);
    else withRoom.push(header);
  }
  const headers = [...always, ...delivery.callbackHeaders];
  let room = MAX_CHARACTERS - headers.reduce((sum, header) => sum + headerLength(header), 0);
  for (const header of withRoom) {
    const length = headerLength(header);
    if (length > room) continue;
    room -= length;
    headers.push(header);
  }
  return headers;
}

/** Colon, space and line break included. */
function headerLength([name, value]: HeaderPair): number {
  return name.length + value.length + 4;
}
