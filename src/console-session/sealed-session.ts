import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** The tokens that a person has signed in with. */
export type TokenKind = 'normal' | 'javascript' | 'admin';

/** A session of the console. It is kept in its browser only, sealed. */
export interface SealedSession {
  readonly tokens: Partial<Readonly<Record<TokenKind, string>>>;
  /** When it began, in milliseconds of the service time. */
  readonly since: number;
  /** When it was last renewed. */
  readonly used: number;
}

/** Seals sessions, so that a cookie shows no token and nobody can change it. */
export interface SessionSeal {
  /** Differs for each database: a browser sends the cookies of all ports of a host. */
  readonly cookieName: string;
  seal(session: SealedSession): string;
  /** Undefined for what this seal has not made, or was changed. */
  open(sealed: string): SealedSession | undefined;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Three tokens of the longest kind and their names fit in. */
const MAX_SEALED = 4_000;

/** Makes the seal of a secret. */
export function createSessionSeal(secret: string): SessionSeal {
  const derive = (use: string, bytes: number): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, '', use, bytes));
  const key = derive('console sessions', 32);
  return {
    cookieName: `console-${derive('console cookie', 6).toString('hex')}`,
    seal(session) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      const text = Buffer.concat([cipher.update(JSON.stringify(session)), cipher.final()]);
      return Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url');
    },
    open(sealed) {
      if (sealed.length > MAX_SEALED) return undefined;
      const bytes = Buffer.from(sealed, 'base64url');
      if (bytes.byteLength <= NONCE_BYTES + TAG_BYTES) return undefined;
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      try {
        const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
        return JSON.parse(Buffer.concat([text, decipher.final()]).toString()) as SealedSession;
      } catch {
        // Another secret made it, or somebody changed it.
        return undefined;
      }
    },
  };
}
