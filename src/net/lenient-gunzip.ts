import type { Transform } from 'node:stream';
import { createInflateRaw, type ZlibOptions } from 'node:zlib';
import { httpError } from './http-failures.ts';

/** Servers write a few bytes; a name or comment may be longer. */
const MAX_HEADER_BYTES = 64 * 1_024;
const FIXED_BYTES = 10;
const HAS_CHECKSUM = 0x02;
const HAS_EXTRA = 0x04;
const HAS_NAME = 0x08;
const HAS_COMMENT = 0x10;

/**
 * Decodes the first member of gzip data and drops what follows it, as Chromium does. Node's own
 * decoder fails there, and keeps the last piece that it has decoded.
 */
export function createLenientGunzip(options: ZlibOptions): Transform {
  const inflate = createInflateRaw(options);
  let header: Buffer | undefined = Buffer.alloc(0);
  const write = inflate._transform.bind(inflate);
  inflate._transform = (chunk: Buffer, encoding, done) => {
    if (header === undefined) return write(chunk, encoding, done);
    header = Buffer.concat([header, chunk]);
    const length = headerLength(header);
    const isGzip = header[0] === 0x1f && (header[1] ?? 0x8b) === 0x8b && (header[2] ?? 8) === 8;
    if (!isGzip || header.length > MAX_HEADER_BYTES) return done(httpError('decoding_failed'));
    if (length === undefined) return done();
    const rest = header.subarray(length);
    header = undefined;
    return rest.length > 0 ? write(rest, encoding, done) : done();
  };
  return inflate;
}

/** Length of a member's header (RFC 1952, 2.3); undefined when it is not complete. */
function headerLength(bytes: Buffer): number | undefined {
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
