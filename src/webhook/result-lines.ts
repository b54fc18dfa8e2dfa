import { createHash } from 'node:crypto';
import type { Delivery } from '../domain/delivery.ts';
import { pageEnvelope, resultFields } from '../domain/result-fields.ts';

const OPEN = Buffer.from('{');
const LINE_END = Buffer.from('\n');

/** Identifies the POST of these results: the same whenever the same ones are sent together. */
export function idOfResults(deliveries: readonly Delivery[]): string {
  const hash = createHash('sha256');
  for (const { rid } of deliveries) hash.update(rid);
  return `results_${hash.digest('hex').slice(0, 32)}`;
}

/**
 * NDJSON of results, in pieces: of each the JSON envelope, with the `callback_headers` of its push as an
 * object. `unpack` decompresses a page.
 */
export async function* resultLines(
  deliveries: readonly Delivery[],
  unpack: (body: Uint8Array) => Promise<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (const delivery of deliveries) {
    const page = delivery.plain ?? (await unpack(delivery.body));
    const pieces =
      delivery.contentType === 'gzip/json'
        ? [onOneLine(page)]
        : pageEnvelope(resultFields(delivery, delivery.details), page);
    let isFirst = true;
    for (const piece of pieces) {
      if (isFirst && delivery.callbackHeaders.length > 0) {
        const headers = JSON.stringify(Object.fromEntries(delivery.callbackHeaders));
        yield Buffer.from(`{"callback_headers":${headers},`);
        yield piece.subarray(OPEN.byteLength);
      } else yield piece;
      isFirst = false;
    }
    yield LINE_END;
  }
}

/** An envelope whose line ends, which are between its members, are spaces. */
function onOneLine(envelope: Uint8Array): Uint8Array {
  if (!envelope.includes(0x0a)) return envelope;
  return envelope.map((byte) => (byte === 0x0a ? 0x20 : byte));
}
