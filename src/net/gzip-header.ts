/** Servers write a few bytes; a name or comment may be longer. */
export const MAX_GZIP_HEADER_BYTES = 64 * 1_024;
const FIXED_BYTES = 10;
const HAS_CHECKSUM = 0x02;
const HAS_EXTRA = 0x04;
const HAS_NAME = 0x08;
const HAS_COMMENT = 0x10;

/** Whether the bytes can be the beginning of gzip data. */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && (bytes[1] ?? 0x8b) === 0x8b && (bytes[2] ?? 8) === 8;
}

/** Length of a gzip member's header (RFC 1952, 2.3); undefined when it is not complete. */
export function gzipHeaderLength(bytes: Buffer): number | undefined {
  if (bytes.length < FIXED_BYTES) return undefined;
  const flags = bytes[3] ?? 0;
  let at = FIXED_BYTES;
  if ((flags & HAS_EXTRA) !== 0) {
    if (bytes.length < at + 2) return undefined;
    at += 2 + bytes.readUInt16LE(at);
  }
  for (const flag of [HAS_NAME, HAS_COMMENT]) {
    if ((flags & flag) === 0) continue;
    const end = bytes.indexOf(0, at);
    if (end < 0) return undefined;
    at = end + 1;
  }
  if ((flags & HAS_CHECKSUM) !== 0) at += 2;
  return bytes.length < at ? undefined : at;
}
