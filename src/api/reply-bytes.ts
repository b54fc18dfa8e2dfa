/** An object, an array or a number with its place. */
const VALUE_BYTES = 32;

/** A reply is in memory as a message and encoded. */
const COPIES = 2;

/** About how much memory a reply takes until it is sent, in bytes. */
export function replyBytes(reply: unknown): number {
  return COPIES * size(reply);
}

function size(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value === 'string') return VALUE_BYTES + value.length;
  if (value instanceof Uint8Array) return VALUE_BYTES + value.byteLength;
  if (typeof value !== 'object' || value === null) return VALUE_BYTES;
  let bytes = VALUE_BYTES;
  for (const each of Object.values(value)) bytes += size(each);
  return bytes;
}
