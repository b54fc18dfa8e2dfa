import { isUtf8 } from 'node:buffer';
import { malformed, scanJson } from './scan-message.ts';

/**
 * Parses JSON bytes within the limits of {@link scanJson}. Throws a MessageFault as that does, for bytes
 * that are not UTF-8, and for an object that has a member twice; SyntaxError for what is no JSON.
 */
export function parseJson(bytes: Uint8Array, maxFields: number): unknown {
  // The decoder would replace such bytes: another URL than the client's would be crawled.
  if (!isUtf8(bytes)) throw malformed('it is not UTF-8');
  const members = scanJson(bytes, maxFields);
  // Unlike Buffer's toString it strips a byte order mark.
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  // The parser keeps the last of two.
  if (countMembers(value) < members) throw malformed('an object has a member twice');
  return value;
}

/** The members of all objects in a JSON value. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce((sum: number, each) => sum + countMembers(each), own);
}
