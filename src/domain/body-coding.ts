/** The content codings that a body is kept in. */
export const BODY_CODINGS = ['gzip', 'br', 'zstd'] as const;

/** How a body is compressed, by its name in `Content-Encoding`. */
export type BodyCoding = (typeof BODY_CODINGS)[number];

/** A compressed body. An empty one is no bytes at all, in any coding. */
export interface CodedBody {
  readonly coding: BodyCoding;
  readonly bytes: Uint8Array;
}

/** How long gzip bytes say that their content is; 0 for what is too short to be gzip. */
export function gzipContentLength({ buffer, byteOffset, byteLength }: Uint8Array): number {
  return byteLength < 4
    ? 0
    : Buffer.from(buffer, byteOffset, byteLength).readUInt32LE(byteLength - 4);
}

/** The coding of a stored body; databases of earlier versions hold gzip and do not say so. */
export function parseCoding(kept: unknown): BodyCoding {
  return BODY_CODINGS.find((coding) => coding === kept) ?? 'gzip';
}
