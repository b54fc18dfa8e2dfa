import type { Account, TokenOwner } from '../../domain/account.ts';
import { accountExists, accountHasCrawlers, tokenTaken } from '../../domain/errors.ts';
import type { AccountLimits, AccountUsage } from '../../domain/quotas.ts';
import type { AccountPatch, AccountStore, Paging, StorageUse } from '../store.ts';
import type { InThread } from './in-thread.ts';
import { insertRow, type Sql, type SqlRow, toDate } from './sql.ts';

function toAccount(row: SqlRow): Account {
  return {
    accountId: String(row.account_id),
    name: String(row.name),
    email: String(row.email),
    tokenHashes: { normal: String(row.normal_hash), javascript: String(row.javascript_hash) },
    limits: JSON.parse(String(row.limits)) as Partial<AccountLimits>,
    createdAt: toDate(row.created_at),
  };
}

function assertTokensFree(sql: Sql, hashes: readonly string[], accountId: string): void {
  for (const hash of hashes) {
    const owner = findByTokenHash(sql, hash);
    if (owner !== undefined && owner.account.accountId !== accountId) {
      throw tokenTaken();
    }
  }
}

function create(sql: Sql, account: Account): void {
  const named = sql.get('SELECT name FROM accounts WHERE name = ? COLLATE NOCASE', account.name);
  if (named !== undefined) throw accountExists(String(named.name));
  const { normal, javascript } = account.tokenHashes;
  assertTokensFree(sql, [normal, javascript], account.accountId);
  insertRow(sql, 'accounts', {
    account_id: account.accountId,
    name: account.name,
    email: account.email,
    normal_hash: normal,
    javascript_hash: javascript,
    created_at: account.createdAt.getTime(),
    limits: JSON.stringify(account.limits),
  });
}

function findByTokenHash(sql: Sql, hash: string): TokenOwner | undefined {
  for (const tokenType of ['normal', 'javascript'] as const) {
    const row = sql.get(`SELECT * FROM accounts WHERE ${tokenType}_hash = ?`, hash);
    if (row !== undefined) return { account: toAccount(row), tokenType };
  }
  return undefined;
}

function findByName(sql: Sql, name: string): Account | undefined {
  return sql.all('SELECT * FROM accounts WHERE name = ?', name).map(toAccount)[0];
}

function get(sql: Sql, accountId: string): Account | undefined {
  return sql.all('SELECT * FROM accounts WHERE account_id = ?', accountId).map(toAccount)[0];
}

function list(sql: Sql, { limit, after }: Paging): Account[] {
  return sql
    .all('SELECT * FROM accounts WHERE name > ? ORDER BY name LIMIT ?', after ?? '', limit)
    .map(toAccount);
}

function update(sql: Sql, accountId: string, patch: AccountPatch): Account | undefined {
  const account = get(sql, accountId);
  if (account === undefined) return undefined;
  const hashes = { ...account.tokenHashes, ...patch.tokenHashes };
  assertTokensFree(sql, Object.values(hashes), accountId);
  sql.run(
    `UPDATE accounts SET email = ?, normal_hash = ?, javascript_hash = ?, limits = ?
      WHERE account_id = ?`,
    patch.email ?? account.email,
    hashes.normal,
    hashes.javascript,
    JSON.stringify(patch.limits ?? account.limits),
    accountId,
  );
  return get(sql, accountId);
}

function remove(sql: Sql, accountId: string, now: Date): boolean {
  if (sql.get('SELECT 1 FROM crawlers WHERE account_id = ? LIMIT 1', accountId) !== undefined) {
    throw accountHasCrawlers();
  }
  if (sql.run('DELETE FROM accounts WHERE account_id = ?', accountId) === 0) return false;
  sql.run('DELETE FROM cookie_sessions WHERE account_id = ?', accountId);
  sql.run('DELETE FROM proxy_pools WHERE account_id = ?', accountId);
  insertRow(sql, 'removed_accounts', { account_id: accountId, removed_at: now.getTime() });
  return true;
}

function usage(sql: Sql, accountId: string): AccountUsage | undefined {
  const row = sql.get(
    `SELECT crawlers, concurrency, stored_bytes, queued_bytes, queued FROM accounts
      WHERE account_id = ?`,
    accountId,
  );
  if (row === undefined) return undefined;
  return {
    crawlers: Number(row.crawlers),
    concurrency: Number(row.concurrency),
    storedBytes: Number(row.stored_bytes),
    queuedBytes: Number(row.queued_bytes),
    queued: Number(row.queued),
  };
}

function full(sql: Sql, defaultLimit: number): StorageUse[] {
  return sql
    .all(
      `SELECT account_id, stored_bytes, coalesce(json_extract(limits, '$.storageBytes'), ?) most
        FROM accounts WHERE most > 0 AND stored_bytes >= most`,
      defaultLimit,
    )
    .map((row) => ({
      accountId: String(row.account_id),
      usedBytes: Number(row.stored_bytes),
      limitBytes: Number(row.most),
    }));
}

/** Adds to the stored bytes of an account. */
export function addStored(sql: Sql, accountId: string, by: number): void {
  if (by === 0) return;
  sql.run(
    'UPDATE accounts SET stored_bytes = stored_bytes + ? WHERE account_id = ?',
    by,
    accountId,
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
  usage,
  full,
} satisfies InThread<AccountStore>;
