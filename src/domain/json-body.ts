import { isUtf8 } from 'node:buffer';

/** Members of a JSON envelope. */
export interface JsonBody {
  readonly body: unknown;
  readonly body_encoding?: 'base64';
}

/**
 * A page as members of a JSON envelope: text as a string, other bytes as base64 and marked so.
 * Whether it is text is decided by its bytes alone, so that every envelope of one page agrees.
 */
export function jsonBody(page: Uint8Array): JsonBody {
  const bytes = Buffer.from(page.buffer, page.byteOffset, page.byteLength);
  return isUtf8(bytes)
    ? { body: bytes.toString('utf8') }
    : { body: bytes.toString('base64'), body_encoding: 'base64' };
}

/**
 * The same where structured data was asked for: data as a JSON object or array. What no data could
 * be taken from, such as the page of an error, stays text.
 */
export function structuredBody(page: Uint8Array): JsonBody {
  const envelope = jsonBody(page);
  if (envelope.body_encoding !== undefined) return envelope;
  try {
    const body: unknown = JSON.parse(String(envelope.body));
    return typeof body === 'object' && body !== null ? { body } : envelope;
  } catch {
    // No JSON: the page itself.
    return envelope;
  }
}
