import type { Delivery } from '../domain/delivery.ts';
import type { HeaderPair } from '../domain/job.ts';
import { extraFields, resultFields } from './delivery-fields.ts';
import { headerValue } from './header-value.ts';

/**
 * Extras are added while all headers stay below this. With a request line of the longest callback URL the whole head is then
 * within the 16 KiB that node's HTTP server takes by default.
 */
const MAX_CHARACTERS = 13_000;

/**
 * The headers that tell a result. Each of the statuses goes under every spelling receivers read, because proxies that drop names
 * with underscores exist as well as receivers that read no others. Then the push's `callback_headers`, and of `pushed_url` and the
 * extras those that there is room for.
 */
export function deliveryHeaders(delivery: Delivery): HeaderPair[] {
  const fields = resultFields(delivery);
  const headers: HeaderPair[] = [
    ['cb_status', String(fields.cb_status)],
    ['CB-Status', String(fields.cb_status)],
    ['pc_status', String(fields.pc_status)],
    ['PC-Status', String(fields.pc_status)],
    ['original_status', String(fields.original_status)],
    ['Original-Status', String(fields.original_status)],
    ['rid', fields.rid],
    ['url', headerValue(fields.url)],
    ...delivery.callbackHeaders,
  ];
  let room = MAX_CHARACTERS - headers.reduce((sum, header) => sum + lengthOf(header), 0);
  const more = { pushed_url: fields.pushed_url, ...extraFields(delivery) };
  for (const [name, value] of Object.entries(more)) {
    const header: HeaderPair = [name, headerValue(value)];
    if (lengthOf(header) > room) continue;
    room -= lengthOf(header);
    headers.push(header);
  }
  return headers;
}

// Colon, space and line break count too.
function lengthOf([name, value]: HeaderPair): number {
  return name.length + value.length + 4;
}
