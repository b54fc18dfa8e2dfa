import type { AccountLimits, AccountUsage } from './quotas.ts';

/** The type of a token, and of the crawlers that it addresses. */
export type TokenType = 'normal' | 'javascript';

/** A client of the service, who owns crawlers and results. */
export interface Account {
  /** 24 lower-case hexadecimal digits. */
  readonly accountId: string;
  /** Unique. */
  readonly name: string;
  /** Receives notices of paused crawlers and a full queue; empty for none. */
  readonly email: string;
  /** SHA-256 of each token in lower-case hexadecimal. The tokens themselves are never stored. */
  readonly tokenHashes: Readonly<Record<TokenType, string>>;
  /** Its own limits; where one is missing, that of the service applies. */
  readonly limits: Partial<AccountLimits>;
  readonly createdAt: Date;
}

/** Which account a token belongs to, and which of its two tokens it is. */
export interface TokenOwner {
  readonly account: Account;
  readonly tokenType: TokenType;
  /** What the account used when the token was looked up, if the store read that too. */
  readonly usage?: ReadUsage;
}

/** Whose jobs and results a token has. */
export function scopeOf({ account: { accountId }, tokenType }: TokenOwner) {
  return { accountId, tokenType };
}

/** What an account used at a moment. */
export interface ReadUsage extends AccountUsage {
  /** The reading of `performance.now()` then. */
  readonly readAtMs: number;
}
