import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { DeliveryHeader } from './callback-headers.ts';
import type { WebhookSecret } from './crawler.ts';
import { DAY_MS } from './durations.ts';
import { getOrInsert } from './get-or-insert.ts';

const PREFIX = 'whsec_';
/** How long a replaced secret still signs. */
const OVERLAP_MS = DAY_MS;
/** Limits the signature header, however often secrets are rotated. */
const MAX_SECRETS = 5;

/** A new signing secret: `whsec_` and base64 of 32 random bytes. */
export function createWebhookSecret(): string {
  return PREFIX + randomBytes(32).toString('base64');
}

/** The secrets that sign at `now`, newest first: all that have not expired. */
export function activeSecrets(secrets: readonly WebhookSecret[], now: Date): WebhookSecret[] {
  return secrets.filter((secret) => secret.expiresAt === undefined || secret.expiresAt > now);
}

/**
 * The secrets of a crawler after a rotation: a new one, then the previous one, which signs for
 * another 24 hours. Older ones keep their expiry; expired ones and all but the newest five are
 * dropped.
 */
export function rotateSecrets(secrets: readonly WebhookSecret[], now: Date): WebhookSecret[] {
  const expiresAt = new Date(now.getTime() + OVERLAP_MS);
  const older = activeSecrets(secrets, now).map((secret) => ({ expiresAt, ...secret }));
  return [{ secret: createWebhookSecret() }, ...older].slice(0, MAX_SECRETS);
}

/** Identifies a signed message. */
export interface SignedMessage {
  /**
   * The same for every attempt at one message, so that receivers can drop duplicates. Contains no
   * dots.
   */
  readonly id: string;
  readonly sentAt: Date;
}

/** Signs one payload, piece by piece. */
export interface Signing {
  update(piece: Uint8Array): void;
  /** One signature for each secret: `v1,` and base64. May be called once. */
  signatures(): string[];
}

/**
 * Keys by secret, cached because making a key takes four times as long as signing a page with it.
 */
const keys = new WeakMap<WebhookSecret, KeyObject>();

function toKey(secret: WebhookSecret): KeyObject {
  return getOrInsert(keys, secret, () =>
    createSecretKey(secret.secret.replace(PREFIX, ''), 'base64'),
  );
}

/**
 * Starts to sign a payload with each secret, as in Standard Webhooks v1: HMAC-SHA256 of
 * `id.timestamp.payload`.
 */
export function startSigning(secrets: readonly WebhookSecret[], message: SignedMessage): Signing {
  const macs = secrets.map((secret) =>
    createHmac('sha256', toKey(secret)).update(`${message.id}.${timestamp(message)}.`),
  );
  return {
    update(piece) {
      for (const mac of macs) mac.update(piece);
    },
    signatures: () => macs.map((mac) => `v1,${mac.digest('base64')}`),
  };
}

/**
 * The three headers of Standard Webhooks. The timestamp is in seconds; the signatures are separated
 * by spaces, and a receiver accepts a message when one of them matches. No headers without a
 * signature.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function signatureHeaders(
  message: SignedMessage,
  signatures: readonly string[],
): DeliveryHeader[] {
  if (signatures.length === 0) return [];
  return [
    ['webhook-id', message.id],
    ['webhook-timestamp', timestamp(message)],
    ['webhook-signature', signatures.join(' ')],
  ];
}

function timestamp({ sentAt }: SignedMessage): string {
  return String(Math.floor(sentAt.getTime() / 1_000));
}
