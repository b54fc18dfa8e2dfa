import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A new access token: 32 characters of the URL-safe alphabet, 192 random bits. */
export function createToken(): string {
  return randomBytes(24).toString('base64url');
}

/**
 * SHA-256 of a token, hexadecimal, as it is stored. Tokens are random and long, so a fast hash
 * without salt is as safe as a slow one, and a token can be looked up by it.
 */
export function tokenHash(token: string): string {
  return hash('sha256', token);
}

/** Compares two tokens in constant time. */
export function isSameToken(left: string, right: string): boolean {
  return timingSafeEqual(Buffer.from(tokenHash(left)), Buffer.from(tokenHash(right)));
}
