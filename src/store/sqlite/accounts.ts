import type { Account, TokenOwner, TokenType } from '../../domain/account.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Paging } from '../store.ts';
import { dateOf, type Sql, type SqlRow } from './sql.ts';

function accountFrom(row: SqlRow): Account {
  return {
    accountId: String(row.account_id),
    name: String(row.name),
    email: String(row.email),
    tokenHashes: { normal: String(row.normal_hash), javascript: String(row.javascript_hash) },
    createdAt: dateOf(row.created_at),
  };
}

function assertTokensFree(sql: Sql, hashes: readonly string[], accountId: string): void {
  for (const hash of hashes) {
    const owner = findByTokenHash(sql, hash);
    if (owner !== undefined && owner.account.accountId !== accountId) {
      throw new DomainError('conflict', 'token_taken', 'The token belongs to another account.');
    }
  }
}

function create(sql: Sql, account: Account): void {
  if (findByName(sql, account.name) !== undefined) {
    throw new DomainError('conflict', 'account_exists', `There is an account "${account.name}".`, {
      field: 'name',
    });
  }
  const { normal, javascript } = account.tokenHashes;
  assertTokensFree(sql, [normal, javascript], account.accountId);
  sql.run(
    'INSERT INTO accounts (account_id, name, email, normal_hash, javascript_hash, created_at) VALUES (?, ?, ?, ?, ?, ?)',
    account.accountId,
    account.name,
    account.email,
    normal,
    javascript,
    account.createdAt.getTime(),
  );
}

function findByTokenHash(sql: Sql, hash: string): TokenOwner | undefined {
  for (const tokenType of ['normal', 'javascript'] as const) {
    const row = sql.get(`SELECT * FROM accounts WHERE ${tokenType}_hash = ?`, hash);
    if (row !== undefined) return { account: accountFrom(row), tokenType };
  }
  return undefined;
}

function findByName(sql: Sql, name: string): Account | undefined {
  const row = sql.get('SELECT * FROM accounts WHERE name = ?', name);
  return row === undefined ? undefined : accountFrom(row);
}

function get(sql: Sql, accountId: string): Account | undefined {
  const row = sql.get('SELECT * FROM accounts WHERE account_id = ?', accountId);
  return row === undefined ? undefined : accountFrom(row);
}

function list(sql: Sql, { limit, after }: Paging): Account[] {
  return sql
    .all('SELECT * FROM accounts WHERE name > ? ORDER BY name LIMIT ?', after ?? '', limit)
    .map(accountFrom);
}

function update(
  sql: Sql,
  accountId: string,
  patch: { email?: string; tokenHashes?: Partial<Record<TokenType, string>> },
): Account | undefined {
  const account = get(sql, accountId);
  if (account === undefined) return undefined;
  const hashes = { ...account.tokenHashes, ...patch.tokenHashes };
  assertTokensFree(sql, Object.values(hashes), accountId);
  sql.run(
    'UPDATE accounts SET email = ?, normal_hash = ?, javascript_hash = ? WHERE account_id = ?',
    patch.email ?? account.email,
    hashes.normal,
    hashes.javascript,
    accountId,
  );
  return get(sql, accountId);
}

function remove(sql: Sql, accountId: string): boolean {
  if (sql.get('SELECT 1 FROM crawlers WHERE account_id = ? LIMIT 1', accountId) !== undefined) {
    throw new DomainError(
      'failed_precondition',
      'account_has_crawlers',
      'The account has crawlers; delete them first.',
    );
  }
  return sql.run('DELETE FROM accounts WHERE account_id = ?', accountId) > 0;
}

function queued(sql: Sql, accountId: string): number {
  return Number(
    sql.get('SELECT queued FROM accounts WHERE account_id = ?', accountId)?.queued ?? 0,
  );
}

/** Accounts and their tokens. */
export const accounts = {
  create,
  findByTokenHash,
  findByName,
  get,
  list,
  update,
  remove,
  queued,
};
