import type { DeliverBatch } from '../domain/crawler-settings.ts';
import type { Delivery } from '../domain/delivery.ts';
import type { Grant } from '../fairness/fair-pool.ts';

/** A delivery that waits for a slot, and the memory of its page. */
export interface WaitingDelivery {
  readonly delivery: Delivery;
  readonly held: readonly Grant[];
  /** Since when, by the monotonic clock. */
  readonly sinceMs: number;
}

/** What may be posted now: each group by one POST. */
export interface DeliveryGroups {
  readonly groups: readonly (readonly WaitingDelivery[])[];
  /** When the results that still wait for others are posted without them; undefined for none. */
  readonly dueMs: number | undefined;
}

/** Bytes of pages, before compression, in one POST of several results. */
const MAX_BYTES = 4 * 1_024 * 1_024;

/**
 * The first `most` groups of the deliveries that wait. Without `together` each is a group of its own,
 * and so is each event. A group that is not full is posted when its first result has waited long enough.
 */
export function groupsOf(
  waiting: Iterable<WaitingDelivery>,
  together: DeliverBatch | undefined,
  most: number,
  nowMs: number,
): DeliveryGroups {
  const groups: WaitingDelivery[][] = [];
  let open: WaitingDelivery[] = [];
  let bytes = 0;

  function close(): void {
    if (open.length > 0) groups.push(open);
    open = [];
    bytes = 0;
  }

  for (const each of waiting) {
    if (groups.length >= most) break;
    const { delivery } = each;
    if (together === undefined || delivery.details.event !== undefined) {
      groups.push([each]);
      continue;
    }
    const size = pageBytes(delivery);
    if (bytes + size > MAX_BYTES) close();
    open.push(each);
    bytes += size;
    if (open.length >= together.maxResults) close();
  }
  const [first] = open;
  const dueMs = first === undefined ? undefined : first.sinceMs + (together?.maxMs ?? 0);
  if (dueMs === undefined || dueMs > nowMs) return { groups: groups.slice(0, most), dueMs };
  close();
  return { groups: groups.slice(0, most), dueMs: undefined };
}

/** Bytes of a page before compression, as its gzip says at its end; a site may have written that. */
function pageBytes({ plain, body }: Delivery): number {
  if (plain !== undefined) return plain.byteLength;
  const { byteLength, buffer, byteOffset } = body;
  if (byteLength < 4) return byteLength;
  const said = new DataView(buffer, byteOffset, byteLength).getUint32(byteLength - 4, true);
  return Math.max(said, byteLength);
}
