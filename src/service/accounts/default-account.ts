import type { TokenType } from '../../domain/account.ts';
import { DomainError } from '../../domain/errors.ts';
import type { AccountStore } from '../../store/store.ts';
import type { AccountManagement, TokenPair } from './accounts.ts';
import { tokenHash } from './tokens.ts';

/** The account that the first start makes. */
export const DEFAULT_ACCOUNT = 'default';

/**
 * Creates the account `default` if there is none, with the preset tokens where given, and returns
 * its tokens: they can be shown only now. If the account exists, preset tokens that differ from its
 * own replace them, and undefined is returned.
 */
export async function ensureDefaultAccount(
  deps: { readonly accounts: AccountStore; readonly management: AccountManagement },
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
  const patch = {
    ...(Object.keys(changed).length > 0 ? { tokenHashes: changed } : {}),
    ...(email !== '' && email !== existing.email ? { email } : {}),
  };
  if (Object.keys(patch).length > 0) await deps.accounts.update(existing.accountId, patch);
  return undefined;
}
