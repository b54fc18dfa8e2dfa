import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** Seals values, so that nobody without the secret can read, make or change one. */
export interface Seal<Value> {
  seal(value: Value): string;
  /** Undefined for what this seal has not made, or was changed. */
  open(sealed: string): Value | undefined;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Bytes that follow from a secret, others for each use. */
export function deriveKey(secret: string, use: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', use, bytes));
}

/**
 * Makes the seal of a secret for one use, by AES-256-GCM over the value's JSON. It opens what was
 * sealed by any of the secrets, and seals by the first.
 */
export function createSeal<Value>(
  secrets: readonly [string, ...string[]],
  use: string,
): Seal<Value> {
  const [first, ...former] = secrets;
  const seal = sealOf<Value>(deriveKey(first, use, 32));
  const others = former.map((secret) => sealOf<Value>(deriveKey(secret, use, 32)));
  return {
    seal: seal.seal,
    open(sealed) {
      for (const each of [seal, ...others]) {
        const value = each.open(sealed);
        if (value !== undefined) return value;
      }
      return undefined;
    },
  };
}

function sealOf<Value>(key: Buffer): Seal<Value> {
  return {
    seal(value) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      const text = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
      return Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url');
    },
    open(sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      if (bytes.byteLength <= NONCE_BYTES + TAG_BYTES) return undefined;
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      try {
        const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
        return JSON.parse(Buffer.concat([text, decipher.final()]).toString()) as Value;
      } catch {
        // Another secret made it, or somebody changed it.
        return undefined;
      }
    },
  };
}
