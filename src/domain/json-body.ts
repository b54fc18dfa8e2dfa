import { isUtf8 } from 'node:buffer';

/**
 * A page as members of a JSON envelope: text as a string, other bytes as base64 and marked so. Whether it is text is decided by its
 * bytes alone, so that every envelope of one page agrees.
 */
export function jsonBody(
  page: Uint8Array,
): { readonly body: string } | { readonly body: string; readonly body_encoding: 'base64' } {
  const bytes = Buffer.from(page.buffer, page.byteOffset, page.byteLength);
  return isUtf8(bytes)
    ? { body: bytes.toString('utf8') }
    : { body: bytes.toString('base64'), body_encoding: 'base64' };
}
