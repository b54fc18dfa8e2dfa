import { createHmac, randomBytes } from 'node:crypto';
import type { WebhookSecret } from './crawler.ts';
import type { HeaderPair } from './job.ts';

const PREFIX = 'whsec_';
/** How long a replaced secret keeps signing. */
const OVERLAP_MS = 24 * 60 * 60 * 1_000;
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
 * The crawler's secrets after a rotation: a new one first, the one before it signing for another 24 hours, expired ones gone. One that
 * is on its way out already keeps its time, as long as it is among the newest five.
 */
export function rotateSecrets(secrets: readonly WebhookSecret[], now: Date): WebhookSecret[] {
  const expiresAt = new Date(now.getTime() + OVERLAP_MS);
  const older = activeSecrets(secrets, now).map((secret) => ({ expiresAt, ...secret }));
  return [{ secret: createWebhookSecret() }, ...older].slice(0, MAX_SECRETS);
}

/** What is signed. */
export interface SignedMessage {
  /** The same for every attempt at one message, so that receivers can drop repeated ones. Without dots. */
  readonly id: string;
  readonly sentAt: Date;
  /**
   * The forms of the body a receiver may have in hand, each signed: the bytes as sent first, and of a compressed body also
   * the plain bytes.
   */
  readonly payloads: readonly Uint8Array[];
}

/**
 * The three headers of Standard Webhooks (v1, HMAC-SHA256 of `id.timestamp.payload`, the timestamp in seconds). `webhook-signature`
 * holds a signature for each secret and payload, separated by spaces; a receiver accepts when any matches. No headers without
 * a secret. https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function signatureHeaders(
  secrets: readonly WebhookSecret[],
  message: SignedMessage,
): HeaderPair[] {
  if (secrets.length === 0) return [];
  const timestamp = String(Math.floor(message.sentAt.getTime() / 1_000));
  const signatures = message.payloads.flatMap((payload) =>
    secrets.map(({ secret }) => {
      const key = Buffer.from(secret.replace(PREFIX, ''), 'base64');
      const mac = createHmac('sha256', key).update(`${message.id}.${timestamp}.`).update(payload);
      return `v1,${mac.digest('base64')}`;
    }),
  );
  return [
    ['webhook-id', message.id],
    ['webhook-timestamp', timestamp],
    ['webhook-signature', signatures.join(' ')],
  ];
}
