import type { Account, TokenType } from '../domain/account.ts';
import { parseAccountName } from '../domain/account-name.ts';
import type { Clock } from '../domain/clock.ts';
import { DomainError, invalidField } from '../domain/errors.ts';
import { createRid } from '../domain/rid.ts';
import type { AccountStore } from '../store/store.ts';
import type { Authenticator } from './authenticate.ts';
import { createToken, tokenHash } from './tokens.ts';

/** The two tokens of an account, in the only moment they can be read. */
export type TokenPair = Readonly<Record<TokenType, string>>;

/** An account and how much its queues hold. */
export interface AccountDetails {
  readonly account: Account;
  readonly queued: number;
}

/** Managing accounts; for the operator. */
export interface AccountManagement {
  /** Throws `conflict` when the name is taken. */
  create(
    name: string,
    email: string,
    preset?: Partial<TokenPair>,
  ): Promise<AccountDetails & { readonly tokens: TokenPair }>;
  /** Throws `not_found`. */
  get(name: string): Promise<AccountDetails>;
  list(limit: number, after: string): Promise<AccountDetails[]>;
  /** Throws `not_found`. */
  setEmail(name: string, email: string): Promise<AccountDetails>;
  /** The new token; the old one stops working. Throws `not_found`. */
  rotateToken(name: string, tokenType: TokenType): Promise<string>;
  /** Throws `not_found`, and `failed_precondition` while it has crawlers. */
  remove(name: string): Promise<void>;
}

/** Makes the account management. */
export function createAccountManagement(deps: {
  readonly accounts: AccountStore;
  readonly authenticator: Pick<Authenticator, 'reset'>;
  readonly clock: Clock;
}): AccountManagement {
  const { accounts } = deps;

  const notFound = (name: string): DomainError =>
    new DomainError('not_found', 'account_not_found', `There is no account "${name}".`, {
      field: 'name',
    });

  async function byName(name: string): Promise<Account> {
    const account = await accounts.findByName(name);
    if (account === undefined) throw notFound(name);
    return account;
  }

  async function details(account: Account): Promise<AccountDetails> {
    return { account, queued: await accounts.queued(account.accountId) };
  }

  return {
    async create(name, email, preset = {}) {
      const now = deps.clock.now();
      const tokens = {
        normal: preset.normal ?? createToken(),
        javascript: preset.javascript ?? createToken(),
      };
      const account: Account = {
        accountId: createRid(now),
        name: parseAccountName(name),
        email: checkedEmail(email),
        tokenHashes: {
          normal: tokenHash(tokens.normal),
          javascript: tokenHash(tokens.javascript),
        },
        limits: {},
        createdAt: now,
      };
      await accounts.create(account);
      return { account, queued: 0, tokens };
    },

    get: async (name) => details(await byName(name)),

    async list(limit, after) {
      const page = await accounts.list(after === '' ? { limit } : { limit, after });
      return Promise.all(page.map(details));
    },

    async setEmail(name, email) {
      const { accountId } = await byName(name);
      const account = await accounts.update(accountId, { email: checkedEmail(email) });
      if (account === undefined) throw notFound(name);
      return details(account);
    },

    async rotateToken(name, tokenType) {
      const { accountId } = await byName(name);
      const token = createToken();
      const account = await accounts.update(accountId, {
        tokenHashes: { [tokenType]: tokenHash(token) },
      });
      if (account === undefined) throw notFound(name);
      deps.authenticator.reset();
      return token;
    },

    async remove(name) {
      const { accountId } = await byName(name);
      if (!(await accounts.remove(accountId, deps.clock.now()))) throw notFound(name);
      deps.authenticator.reset();
    },
  };
}

function checkedEmail(email: string): string {
  const trimmed = email.trim();
  if (trimmed !== '' && !/^[^\s@<>,;]+@[^\s@<>,;]+$/.test(trimmed)) {
    throw invalidField('email', 'email must be one address, or empty for none.');
  }
  return trimmed;
}
