import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A new access token: 32 characters of the URL-safe alphabet, 192 random bits. */
export function createToken(): string {
  return randomBytes(24).toString('base64url');
}

/**
 * SHA-256 of a token, hexadecimal: what is stored. Tokens are random and long, so a fast hash without salt keeps them
 * as safe as a slow one would, and can be looked up.
 */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Compares two tokens in a time that does not depend on where they differ. */
export function isSameToken(left: string, right: string): boolean {
  return timingSafeEqual(Buffer.from(tokenHash(left)), Buffer.from(tokenHash(right)));
}
