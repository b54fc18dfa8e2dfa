import type { AccountLimits } from './quotas.ts';

/** The kind of a token, and of the crawlers it addresses. */
export type TokenType = 'normal' | 'javascript';

/** A client of the service: the owner of crawlers and results. */
export interface Account {
  /** 24 lower-case hexadecimal digits. */
  readonly accountId: string;
  /** Unique. */
  readonly name: string;
  /** Who is told about paused crawlers and a full queue; empty for nobody. */
  readonly email: string;
  /** SHA-256 of each token, lower-case hexadecimal; tokens themselves are never stored. */
  readonly tokenHashes: Readonly<Record<TokenType, string>>;
  /** Limits of its own; those of the service apply otherwise. */
  readonly limits: Partial<AccountLimits>;
  readonly createdAt: Date;
}

/** Which account a token belongs to, and which of its two tokens it is. */
export interface TokenOwner {
  readonly account: Account;
  readonly tokenType: TokenType;
}
