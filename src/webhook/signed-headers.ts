import type { DeliveryHeader } from '../domain/callback-headers.ts';
import type { WebhookSecret } from '../domain/crawler.ts';
import {
  activeSecrets,
  type SignedMessage,
  type Signing,
  signatureHeaders,
  startSigning,
} from '../domain/webhook-signature.ts';
import type { RequestBody } from '../net/http-client.ts';
import { unpackedPieces } from './plain-body.ts';
import { unpackShort } from './unpack-short.ts';

/** A body as it is sent. */
export type SentBody =
  | {
      readonly isGzip: true;
      readonly bytes: Uint8Array;
      /** What it was compressed from, where it is at hand. */
      readonly plain?: Uint8Array;
      /** Has signed what it was compressed from, in its place. */
      readonly signing?: Signing;
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
    const signing = body.signing ?? (await signUnpacked(body, startSigning(active, message)));
    signatures.push(...signing.signatures());
  }
  return signatureHeaders(message, signatures);
}

async function signUnpacked(
  { bytes, plain = unpackShort(bytes) }: Pick<SentBody & { isGzip: true }, 'bytes' | 'plain'>,
  signing: Signing,
): Promise<Signing> {
  if (plain !== undefined) signing.update(plain);
  else {
    // Such a body may decompress to many megabytes.
    for await (const piece of unpackedPieces(bytes)) signing.update(piece);
  }
  return signing;
}
