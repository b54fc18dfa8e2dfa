import type { TokenType } from '../../domain/account.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';
import type { AccountStore } from '../../store/store.ts';
import type { AccountManagement, TokenPair } from './accounts.ts';
import { tokenHash } from './tokens.ts';

/** The account that the first start makes. */
const DEFAULT_ACCOUNT = 'default';

/**
 * Creates the account `default` if it does not exist, with the preset tokens where given, and
 * returns its tokens: they can be shown only now. If the account exists, preset tokens that differ
 * from its own replace them, which the log tells, and undefined is returned.
 */
export async function ensureDefaultAccount(
  deps: {
    readonly accounts: AccountStore;
    readonly management: AccountManagement;
    readonly logger: Pick<Logger, 'warn'>;
  },
  preset: Partial<TokenPair>,
  email: string,
): Promise<TokenPair | undefined> {
  const existing = await deps.accounts.findByName(DEFAULT_ACCOUNT);
  if (existing === undefined) {
    try {
      return (await deps.management.create(DEFAULT_ACCOUNT, email, preset)).tokens;
    } catch (error) {
      // Another process that started at the same moment has created it.
      if (error instanceof DomainError && error.kind === 'conflict') return undefined;
      throw error;
    }
  }
  const changed: Partial<Record<TokenType, string>> = {};
  for (const tokenType of ['normal', 'javascript'] as const) {
    const token = preset[tokenType];
    if (token === undefined) continue;
    const hash = tokenHash(token);
    if (existing.tokenHashes[tokenType] !== hash) changed[tokenType] = hash;
  }
  const tokens = Object.keys(changed);
  if (tokens.length > 0) {
    // A profile of `init --local`, for one, may be younger than the data.
    deps.logger.warn(
      { account: DEFAULT_ACCOUNT, tokens },
      'NORMAL_TOKEN or JAVASCRIPT_TOKEN has replaced a token of the account: the former one is refused from now on',
    );
  }
  const patch = {
    ...(tokens.length > 0 ? { tokenHashes: changed } : {}),
    ...(email !== '' && email !== existing.email ? { email } : {}),
  };
  if (Object.keys(patch).length > 0) await deps.accounts.update(existing.accountId, patch);
  return undefined;
}
