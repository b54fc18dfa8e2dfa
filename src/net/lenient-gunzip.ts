import type { Transform } from 'node:stream';
import { createInflateRaw, type ZlibOptions } from 'node:zlib';
import { gzipHeaderLength, isGzip, MAX_GZIP_HEADER_BYTES } from './gzip-header.ts';
import { httpError } from './http-failures.ts';

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
    const length = gzipHeaderLength(header);
    if (!isGzip(header) || header.length > MAX_GZIP_HEADER_BYTES) {
      return done(httpError('decoding_failed'));
    }
    if (length === undefined) return done();
    const rest = header.subarray(length);
    header = undefined;
    return rest.length > 0 ? write(rest, encoding, done) : done();
  };
  return inflate;
}
