import type { ProxyPoolStore, SealedPools } from '../proxy-pool-store.ts';
import type { InThread } from './in-thread.ts';
import type { Sql } from './sql.ts';

function read(sql: Sql, accountId: string, known: number): SealedPools | undefined {
  const row = sql.get(
    'SELECT version, sealed FROM proxy_pools WHERE account_id = ? AND version <> ?',
    accountId,
    known,
  );
  return row && { version: Number(row.version), sealed: String(row.sealed) };
}

function replace(sql: Sql, accountId: string, known: number, sealed: string): boolean {
  if (known === 0) {
    const text = `INSERT INTO proxy_pools SELECT account_id, 1, ? FROM accounts WHERE account_id = ?
      ON CONFLICT DO NOTHING`;
    return sql.run(text, sealed, accountId) > 0;
  }
  const text =
    'UPDATE proxy_pools SET version = version + 1, sealed = ? WHERE account_id = ? AND version = ?';
  return sql.run(text, sealed, accountId, known) > 0;
}

function owners(sql: Sql, limit: number): string[] {
  const rows = sql.all('SELECT account_id FROM proxy_pools ORDER BY account_id LIMIT ?', limit);
  return rows.map((row) => String(row.account_id));
}

/** Pools of proxies of accounts. */
export const proxyPools = { read, replace, owners } satisfies InThread<ProxyPoolStore>;
