import { constants, createGunzip, gunzipSync } from 'node:zlib';
import { Gunzip } from 'minizlib';
import type { WebhookSecret } from '../domain/crawler.ts';
import type { HeaderPair } from '../domain/job.ts';
import {
  activeSecrets,
  type SignedMessage,
  signatureHeaders,
  startSigning,
} from '../domain/webhook-signature.ts';

/**
 * Compressed bodies up to this are decompressed at once: that costs less than a stream, and they
 * hold a few megabytes at most.
 */
const SMALL_BYTES = 16_384;
/** Takes a third less time for a usual page than zlib's own 16 KiB. */
const CHUNK_BYTES = 131_072;

/**
 * The decompressor of all short bodies. To make one takes a third of the time that a usual page
 * takes, and the garbage collector keeps each until its next full run.
 */
let decompressor = createDecompressor();

function createDecompressor(): Gunzip {
  return new Gunzip({ flush: constants.Z_FINISH });
}

/** A body as it is sent. */
export interface SentBody {
  readonly bytes: Uint8Array;
  readonly isGzip: boolean;
  /** What a gzip body was compressed from, where it is at hand. */
  readonly plain?: Uint8Array;
}

/**
 * The signature headers of a message. They sign the bytes as sent and, of a gzip body, the
 * decompressed bytes too. Most web frameworks hand over nothing else, and several of the Standard
 * Webhooks libraries verify text only. Each secret that has not expired signs. Throws what zlib
 * throws when a gzip body does not decompress.
 */
export async function signedHeaders(
  secrets: readonly WebhookSecret[],
  message: SignedMessage,
  body: SentBody,
): Promise<HeaderPair[]> {
  const active = activeSecrets(secrets, message.sentAt);
  if (active.length === 0) return [];
  const asSent = startSigning(active, message);
  asSent.update(body.bytes);
  const signatures = asSent.signatures();
  if (body.isGzip) {
    const decompressed = startSigning(active, message);
    if (body.plain !== undefined) decompressed.update(body.plain);
    else if (body.bytes.byteLength <= SMALL_BYTES) decompressed.update(decompressShort(body.bytes));
    else {
      // Piece by piece: such a body may decompress to many megabytes.
      const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
      gunzip.end(body.bytes);
      for await (const piece of gunzip) decompressed.update(piece as Uint8Array);
    }
    signatures.push(...decompressed.signatures());
  }
  return signatureHeaders(message, signatures);
}

/** Throws what zlib throws when `bytes` do not decompress. */
function decompressShort(bytes: Uint8Array): Uint8Array {
  const { buffer, byteOffset, byteLength } = bytes;
  try {
    decompressor.reset();
    decompressor.write(Buffer.from(buffer, byteOffset, byteLength));
    const plain = decompressor.read();
    if (plain !== null) return plain;
  } catch {
    // What is wrong with them is said below.
  }
  // An error leaves its traces in the object; an empty body is not an error, and looks the same.
  decompressor = createDecompressor();
  return gunzipSync(bytes);
}
