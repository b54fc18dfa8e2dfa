import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { Account, TokenType } from '../../domain/account.ts';
import { parseAccountName } from '../../domain/account-name.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { defined } from '../../domain/defined.ts';
import { accountHasCrawlers, accountNotFound, invalidField } from '../../domain/errors.ts';
import { fieldName } from '../../domain/field-name.ts';
import type { AccountLimits } from '../../domain/quotas.ts';
import { createRid } from '../../domain/rid.ts';
import type { Store } from '../../store/store.ts';
import type { Authenticator } from './authenticate.ts';
import type { QuotaReport, Quotas } from './quotas.ts';
import { createToken, tokenHash } from './tokens.ts';

/** Both tokens of an account. They can be read only when they are made: the store keeps hashes. */
export type TokenPair = Readonly<Record<TokenType, string>>;

/** An account, the number of its queued URLs, and its quotas; a list has no quotas. */
export interface AccountDetails {
  readonly account: Account;
  readonly queued: number;
  readonly quotas: QuotaReport | undefined;
}

/** The operator's use cases: managing accounts. */
export interface AccountManagement {
  /** Throws `conflict` when the name is taken, however it is capitalized. */
  create(
    name: string,
    email: string,
    preset?: Partial<TokenPair>,
    limits?: Partial<AccountLimits>,
  ): Promise<AccountDetails & { readonly tokens: TokenPair }>;
  /** Throws `not_found`. */
  get(name: string): Promise<AccountDetails>;
  list(limit: number, after: string): Promise<AccountDetails[]>;
  /**
   * Changes the given fields; `limits` replaces all of the account's own limits. Throws
   * `not_found`.
   */
  update(
    name: string,
    patch: { readonly email?: string; readonly limits?: Partial<AccountLimits> },
  ): Promise<AccountDetails>;
  /** Returns the new token; the old one stops working. Throws `not_found`. */
  rotateToken(name: string, tokenType: TokenType): Promise<string>;
  /**
   * Removes the account with its `async=true` crawls. Throws `not_found`, and `failed_precondition`
   * while its owner's crawlers exist.
   */
  remove(name: string): Promise<void>;
}

/** There is one internal crawler for each token, so a third row is a crawler of the client's. */
const INTERNAL_AT_MOST = 3;

/** Makes the account management. */
export function createAccountManagement(deps: {
  readonly store: Pick<Store, 'accounts' | 'crawlers'>;
  readonly authenticator: Pick<Authenticator, 'reset'>;
  readonly dispatcher: Pick<Dispatcher, 'abortCrawler'>;
  readonly quotas: Pick<Quotas, 'report' | 'forget'>;
  readonly clock: ServiceClock;
}): AccountManagement {
  const { accounts, crawlers } = deps.store;

  async function byName(name: string): Promise<Account> {
    const account = await accounts.findByName(name);
    if (account === undefined) throw accountNotFound(name);
    return account;
  }

  /**
   * Removes the service's own crawlers of an account. Throws `failed_precondition` if the account
   * has others: removing those is left to the operator.
   */
  async function removeInternal(found: readonly Crawler[]): Promise<void> {
    if (!found.every(isInternal)) {
      throw accountHasCrawlers();
    }
    for (const { crawlerId } of found) {
      deps.dispatcher.abortCrawler(crawlerId);
      await crawlers.remove(crawlerId);
    }
  }

  const queuedOf = async ({ accountId }: Account): Promise<number> =>
    (await accounts.usage(accountId))?.queued ?? 0;

  async function details(account: Account): Promise<AccountDetails> {
    const [queued, quotas] = await Promise.all([queuedOf(account), deps.quotas.report(account)]);
    return { account, queued, quotas };
  }

  return {
    async create(name, email, preset = {}, limits = {}) {
      const now = wallNow(deps.clock);
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
        limits: checkedLimits(limits),
        createdAt: now,
      };
      await accounts.create(account);
      return { ...(await details(account)), tokens };
    },

    get: async (name) => details(await byName(name)),

    async list(limit, after) {
      const page = await accounts.list(after === '' ? { limit } : { limit, after });
      return Promise.all(
        page.map(async (account) => ({
          account,
          queued: await queuedOf(account),
          quotas: undefined,
        })),
      );
    },

    async update(name, { email, limits }) {
      const { accountId } = await byName(name);
      const patch = defined({
        email: email === undefined ? undefined : checkedEmail(email),
        limits: limits && checkedLimits(limits),
      });
      const account = await accounts.update(accountId, patch);
      if (account === undefined) throw accountNotFound(name);
      // The authenticator caches the limits together with the owner of a token.
      deps.authenticator.reset();
      deps.quotas.forget(accountId);
      return details(account);
    },

    async rotateToken(name, tokenType) {
      const { accountId } = await byName(name);
      const token = createToken();
      const account = await accounts.update(accountId, {
        tokenHashes: { [tokenType]: tokenHash(token) },
      });
      if (account === undefined) throw accountNotFound(name);
      deps.authenticator.reset();
      return token;
    },

    async remove(name) {
      const { accountId } = await byName(name);
      await removeInternal(await crawlers.list(accountId, { limit: INTERNAL_AT_MOST }));
      if (!(await accounts.remove(accountId, deps.clock.now()))) throw accountNotFound(name);
      deps.authenticator.reset();
    },
  };
}

function checkedLimits(limits: Partial<AccountLimits>): Partial<AccountLimits> {
  for (const [name, limit] of Object.entries(limits)) {
    if (!Number.isSafeInteger(limit) || limit < 0) {
      const field = `limits.${fieldName(name)}`;
      throw invalidField(
        field,
        `${field} must be a whole number, 0 for no limit.`,
        'invalid_limits',
      );
    }
  }
  return limits;
}

function checkedEmail(email: string): string {
  const trimmed = email.trim();
  if (trimmed !== '' && !/^[^\s@<>,;]+@[^\s@<>,;]+$/.test(trimmed)) {
    throw invalidField('email', 'email must be one address, or empty for none.');
  }
  return trimmed;
}
