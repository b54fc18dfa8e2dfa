import { createSeal, deriveKey, type Seal } from '../domain/seal.ts';

/** The tokens that a person has signed in with. */
export type TokenKind = 'normal' | 'javascript' | 'admin';

/** A session of the console. It is kept in its browser only, sealed. */
export interface SealedSession {
  readonly tokens: Partial<Readonly<Record<TokenKind, string>>>;
  /** The name of the account; empty for an operator only, and absent in sessions of versions before. */
  readonly account?: string;
  /** When it began, in milliseconds of the service time. */
  readonly since: number;
  /** When it was last renewed. */
  readonly used: number;
}

/** Seals sessions, so that a cookie shows no token and nobody can change it. */
export interface SessionSeal extends Seal<SealedSession> {
  /** Differs for each database: a browser sends the cookies of all ports of a host. */
  readonly cookieName: string;
}

/** Three tokens of the longest kind and their names fit in. */
const MAX_SEALED = 4_000;

/** Makes the seal of a secret. */
export function createSessionSeal(secret: string): SessionSeal {
  const { seal, open } = createSeal<SealedSession>([secret], 'console sessions');
  return {
    cookieName: `console-${deriveKey(secret, 'console cookie', 6).toString('hex')}`,
    seal,
    open: (sealed) => (sealed.length > MAX_SEALED ? undefined : open(sealed)),
  };
}
