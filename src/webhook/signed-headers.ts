import { constants, gunzipSync } from 'node:zlib';
import { Gunzip } from 'minizlib';
import type { DeliveryHeader } from '../domain/callback-headers.ts';
import type { WebhookSecret } from '../domain/crawler.ts';
import {
  activeSecrets,
  type SignedMessage,
  signatureHeaders,
  startSigning,
} from '../domain/webhook-signature.ts';
import type { RequestBody } from '../net/http-client.ts';
import { unpackedPieces } from './plain-body.ts';

/**
 * Compressed bodies up to this are decompressed at once: that costs less than a stream, and they
 * hold a few megabytes at most.
 */
const SMALL_BYTES = 16_384;

/**
 * The decompressor of all short bodies. To make one takes a third of the time that a usual page
 * takes, and the garbage collector keeps each until its next full run.
 */
let decompressor = createDecompressor();

function createDecompressor(): Gunzip {
  return new Gunzip({ flush: constants.Z_FINISH });
}

/** A body as it is sent. */
export type SentBody =
  | {
      readonly isGzip: true;
      readonly bytes: Uint8Array;
      /** What it was compressed from, where it is at hand. */
      readonly plain?: Uint8Array;
    }
  | { readonly isGzip: false; readonly bytes: RequestBody };

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
): Promise<DeliveryHeader[]> {
  const active = activeSecrets(secrets, message.sentAt);
  if (active.length === 0) return [];
  const asSent = startSigning(active, message);
  if (body.bytes instanceof Uint8Array) asSent.update(body.bytes);
  else for await (const piece of body.bytes) asSent.update(piece);
  const signatures = asSent.signatures();
  if (body.isGzip) {
    const decompressed = startSigning(active, message);
    if (body.plain !== undefined) decompressed.update(body.plain);
    else if (body.bytes.byteLength <= SMALL_BYTES) decompressed.update(decompressShort(body.bytes));
    else {
      // Such a body may decompress to many megabytes.
      for await (const piece of unpackedPieces(body.bytes)) decompressed.update(piece);
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
