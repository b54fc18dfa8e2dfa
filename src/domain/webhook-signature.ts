import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { WebhookSecret } from './crawler.ts';
import { DAY_MS } from './durations.ts';
import type { HeaderPair } from './job.ts';

const PREFIX = 'whsec_';
/** How long a replaced secret keeps signing. */
const OVERLAP_MS = DAY_MS;
/** Keeps the signature header short however often secrets are rotated. */
const MAX_SECRETS = 5;

/** A new signing secret: `whsec_` and base64 of 32 random bytes. */
export function createWebhookSecret(): string {
  return PREFIX + randomBytes(32).toString('base64');
}

/** The secrets that sign at `now`, newest first: all but the expired. */
export function activeSecrets(secrets: readonly WebhookSecret[], now: Date): WebhookSecret[] {
  return secrets.filter((secret) => secret.expiresAt === undefined || secret.expiresAt > now);
}

/**
 * The crawler's secrets after a rotation: a new one first, the one before it signing for another 24
 * hours, expired ones gone. One that is on its way out already keeps its time, as long as it is
 * among the newest five.
 */
export function rotateSecrets(secrets: readonly WebhookSecret[], now: Date): WebhookSecret[] {
  const expiresAt = new Date(now.getTime() + OVERLAP_MS);
  const older = activeSecrets(secrets, now).map((secret) => ({ expiresAt, ...secret }));
  return [{ secret: createWebhookSecret() }, ...older].slice(0, MAX_SECRETS);
}

/** What identifies a signed message, beside its payload. */
export interface SignedMessage {
  /**
   * The same for every attempt at one message, so that receivers can drop repeated ones. Without
   * dots.
   */
  readonly id: string;
  readonly sentAt: Date;
}

/** The signing of one payload, fed piece by piece. */
export interface Signing {
  update(piece: Uint8Array): void;
  /** One signature for each secret, `v1,` and base64; to be called once. */
  signatures(): string[];
}

/** Keys by secret: making a key takes four times as long as signing a page with it. */
const keys = new WeakMap<WebhookSecret, KeyObject>();

function toKey(secret: WebhookSecret): KeyObject {
  let key = keys.get(secret);
  if (key === undefined) {
    key = createSecretKey(secret.secret.replace(PREFIX, ''), 'base64');
    keys.set(secret, key);
  }
  return key;
}

/**
 * Begins to sign a payload with each secret: Standard Webhooks v1, HMAC-SHA256 of
 * `id.timestamp.payload`.
 */
export function startSigning(secrets: readonly WebhookSecret[], message: SignedMessage): Signing {
  const macs = secrets.map((secret) =>
    createHmac('sha256', toKey(secret)).update(`${message.id}.${timestampOf(message)}.`),
  );
  return {
    update(piece) {
      for (const mac of macs) mac.update(piece);
    },
    signatures: () => macs.map((mac) => `v1,${mac.digest('base64')}`),
  };
}

/**
 * The three headers of Standard Webhooks, the timestamp in seconds and the signatures separated by
 * spaces: a receiver accepts when any of them matches. No headers without a signature.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function signatureHeaders(
  message: SignedMessage,
  signatures: readonly string[],
): HeaderPair[] {
  if (signatures.length === 0) return [];
  return [
    ['webhook-id', message.id],
    ['webhook-timestamp', timestampOf(message)],
    ['webhook-signature', signatures.join(' ')],
  ];
}

function timestampOf({ sentAt }: SignedMessage): string {
  return String(Math.floor(sentAt.getTime() / 1_000));
}
