import { timingSafeEqual } from 'node:crypto';
import type { TokenOwner } from '../domain/account.ts';
import type { Clock } from '../domain/clock.ts';
import { DomainError } from '../domain/errors.ts';
import type { AccountStore } from '../store/store.ts';
import { createExpiringCache } from './expiring-cache.ts';
import { isSameToken, tokenHash } from './tokens.ts';

/** Tells who calls. */
export interface Authenticator {
  /** Whose token it is. Throws `unauthenticated` when it is missing or unknown. */
  authenticate(token: string | undefined): Promise<TokenOwner>;
  /** Throws `unauthenticated` unless it is the admin token, which must be set. */
  authenticateAdmin(token: string | undefined): void;
  /** Forgets what it remembers, after tokens have changed. */
  reset(): void;
}

const WHERE =
  'It goes into the query (?token=TOKEN), the path (/crawler/TOKEN/...) or a header (Authorization: Bearer TOKEN).';

// A revoked token works at most this much longer at the other processes.
const CACHE_MS = 1_000;

/** Makes the authenticator. Token owners are remembered for a second, so that a busy client costs one look-up a second. */
export function createAuthenticator(deps: {
  readonly accounts: Pick<AccountStore, 'findByTokenHash'>;
  readonly adminToken: string;
  readonly clock: Clock;
}): Authenticator {
  const owners = createExpiringCache<TokenOwner>({
    clock: deps.clock,
    ttlMs: CACHE_MS,
    maxEntries: 10_000,
  });
  return {
    async authenticate(token) {
      if (token === undefined || token === '') {
        throw new DomainError(
          'unauthenticated',
          'missing_token',
          `The access token is missing. ${WHERE}`,
          { field: 'token' },
        );
      }
      const hash = tokenHash(token);
      const owner = await owners.get(hash, () => deps.accounts.findByTokenHash(hash));
      const known = owner?.account.tokenHashes[owner.tokenType] ?? '0'.repeat(64);
      if (owner === undefined || !timingSafeEqual(Buffer.from(known), Buffer.from(hash))) {
        throw new DomainError(
          'unauthenticated',
          'invalid_token',
          `The access token is not valid. ${WHERE}`,
          {
            field: 'token',
          },
        );
      }
      return owner;
    },
    authenticateAdmin(token) {
      if (deps.adminToken === '') {
        throw new DomainError(
          'unauthenticated',
          'admin_token_not_set',
          'The account service is off: the operator has not set ADMIN_TOKEN.',
        );
      }
      if (token === undefined || !isSameToken(token, deps.adminToken)) {
        throw new DomainError('unauthenticated', 'invalid_token', 'The admin token is not valid.');
      }
    },
    reset: () => owners.clear(),
  };
}
