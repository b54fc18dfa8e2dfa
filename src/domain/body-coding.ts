/** The content codings that a body is kept in. */
export const BODY_CODINGS = ['gzip', 'br', 'zstd'] as const;

/** How a body is compressed, by its name in `Content-Encoding`. */
export type BodyCoding = (typeof BODY_CODINGS)[number];

/** A compressed body. An empty one is no bytes at all, in any coding. */
export interface CodedBody {
  readonly coding: BodyCoding;
  readonly bytes: Uint8Array;
}

/** The coding of a stored body; databases of earlier versions hold gzip and do not say so. */
export function parseCoding(kept: unknown): BodyCoding {
  return BODY_CODINGS.find((coding) => coding === kept) ?? 'gzip';
}
