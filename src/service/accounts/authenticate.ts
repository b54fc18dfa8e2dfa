import { timingSafeEqual } from 'node:crypto';
import type { TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import { DomainError, invalidToken } from '../../domain/errors.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { StoreTraits } from '../../domain/store-traits.ts';
import type { AccountStore } from '../../store/store.ts';
import { createExpiringCache } from '../expiring-cache.ts';
import { createSharedLookup } from '../shared-lookup.ts';
import type { FailedTokens } from './failed-tokens.ts';
import { isSameToken, tokenHash } from './tokens.ts';

/**
 * Finds the caller by a token. `remote` is the address that the call comes from, empty for none.
 */
export interface Authenticator {
  /**
   * Returns the owner of the token, whatever else came from the same address: clients behind one
   * proxy share one. Throws `unauthenticated` when the token is missing or wrong, and `exhausted`
   * for a wrong one while its address has sent too many.
   */
  authenticate(token: string | undefined, remote?: string): Promise<TokenOwner>;
  /**
   * Throws `unauthenticated` unless it is the admin token, which must be set, and `exhausted` as
   * {@link authenticate} does.
   */
  authenticateAdmin(token: string | undefined, remote?: string): void;
  /** Whether it is the admin token. A wrong one is not counted. */
  isAdmin(token: string): boolean;
  /**
   * Whether the token has been right in this process, or was at its start. It decides who is served
   * first, not who is let in: the token may have been replaced since.
   */
  knows(token: string): boolean;
  /** Makes the tokens of existing accounts known. */
  learn(): Promise<void>;
  /** Drops the cached owners, after tokens or limits have changed. */
  reset(): void;
}

const WHERE =
  'It goes into the query (?token=TOKEN), the path (/crawler/TOKEN/...) or a header (Authorization: Bearer TOKEN).';

const CACHE_MS = 1_000;
/** Tokens that are known; the least recently used are forgotten. */
const MAX_KNOWN = 20_000;
/** Accounts that are read at once. */
const LEARN_PAGE = 1_000;

/**
 * Makes the authenticator. A process that has its database to itself caches token owners for a
 * second, and drops them when a token changes. Where other processes may change tokens, each call
 * is checked in the database; calls at the same moment share one look-up. So a rotated token stops
 * working everywhere at once.
 */
export function createAuthenticator(deps: {
  readonly accounts: Pick<AccountStore, 'findByTokenHash' | 'list'>;
  readonly adminToken: string;
  readonly clock: Clock;
  readonly failedTokens: FailedTokens;
  readonly traits: Pick<StoreTraits, 'shared'>;
}): Authenticator {
  const { failedTokens } = deps;
  const owners = createExpiringCache<TokenOwner>({
    clock: deps.clock,
    ttlMs: CACHE_MS,
    maxEntries: 10_000,
  });
  /** Hashes of tokens that were right. */
  const known = createLruMap<string, true>({ maxEntries: MAX_KNOWN });
  const read = (hash: string) => deps.accounts.findByTokenHash(hash);
  const readTogether = createSharedLookup(read);
  const findOwner = (hash: string) =>
    deps.traits.shared ? readTogether(hash) : owners.get(hash, () => read(hash));

  function isAdminToken(token: string): boolean {
    return deps.adminToken !== '' && isSameToken(token, deps.adminToken);
  }

  /** Counts a wrong token. Returns the error: `wrong`, unless too many came from the address. */
  function refuse(remote: string, wrong: DomainError): DomainError {
    const retryAfterMs = failedTokens.count(remote);
    if (retryAfterMs === 0) return wrong;
    return new DomainError(
      'exhausted',
      'too_many_wrong_tokens',
      'Too many wrong access tokens came from this address.',
      { retryAfterMs },
    );
  }

  return {
    async authenticate(token, remote = '') {
      if (token === undefined || token === '') {
        throw new DomainError(
          'unauthenticated',
          'missing_token',
          `The access token is missing. ${WHERE}`,
          { field: 'token' },
        );
      }
      const hash = tokenHash(token);
      const owner = await findOwner(hash);
      const stored = owner?.account.tokenHashes[owner.tokenType] ?? '0'.repeat(64);
      if (owner === undefined || !timingSafeEqual(Buffer.from(stored), Buffer.from(hash))) {
        throw refuse(
          remote,
          invalidToken(`The access token is not valid. ${WHERE}`, { field: 'token' }),
        );
      }
      known.set(hash, true);
      return owner;
    },
    authenticateAdmin(token, remote = '') {
      if (deps.adminToken === '') {
        throw new DomainError(
          'unauthenticated',
          'admin_token_not_set',
          'The account service is off: the operator has not set ADMIN_TOKEN.',
        );
      }
      if (token === undefined) {
        throw new DomainError(
          'unauthenticated',
          'missing_token',
          'The admin token is missing. It goes into a header (Authorization: Bearer TOKEN).',
        );
      }
      if (!isAdminToken(token)) {
        throw refuse(remote, invalidToken('The admin token is not valid.'));
      }
    },
    isAdmin: isAdminToken,
    knows(token) {
      return known.has(tokenHash(token)) || isAdminToken(token);
    },
    async learn() {
      for (let after: string | undefined; known.size < MAX_KNOWN; ) {
        const accounts = await deps.accounts.list({ limit: LEARN_PAGE, ...defined({ after }) });
        for (const { tokenHashes } of accounts) {
          for (const hash of Object.values(tokenHashes)) known.set(hash, true);
        }
        if (accounts.length < LEARN_PAGE) return;
        after = accounts.at(-1)?.name;
      }
    },
    reset: () => owners.clear(),
  };
}
