import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const MIB = 1024 * 1024;

test('what expired results took is given back to the system, some at a time', async () => {
  await using folder = await temporaryFolder();
  const { store, query, path } = await openSqliteStore({
    dataDir: folder.path,
    logger: silentLogger,
  });
  const pages = async (pragma: string): Promise<number> =>
    Number(Object.values((await query(`PRAGMA ${pragma}`, []))[0] ?? {})[0]);
  const account = { accountId: 'a', name: 'shop', email: '', createdAt: new Date(0), limits: {} };
  await store.accounts.create({
    ...account,
    tokenHashes: { normal: 'n', javascript: 'j' },
  });
  const scope = { accountId: 'a', tokenType: 'normal' } as const;
  const put = (n: number, expiresAt: Date) =>
    store.results.put(
      scope,
      {
        rid: n.toString(16).padStart(24, '0'),
        url: 'https://example.com/',
        pushedUrl: 'https://example.com/',
        cbStatus: 200,
        originalStatus: 200,
        contentType: 'text/html',
        body: randomBytes(100 * 1024),
        coding: 'gzip',
        details: {},
      },
      new Date(0),
      expiresAt,
    );
  await Promise.all(Array.from({ length: 200 }, (_, n) => put(n, new Date(1_000))));
  await put(1_000, new Date(10_000));
  expect((await pages('page_count')) * 4_096).toBeGreaterThan(19 * MIB);
  await store.maintain(new Date(2_000));
  expect(await pages('freelist_count')).toBeLessThanOrEqual(1_000);
  // The last result is where it was for its readers.
  expect(
    (await store.results.get(scope, (1_000).toString(16).padStart(24, '0')))?.body,
  ).toHaveLength(100 * 1024);
  await store.close();
  expect((await stat(path)).size).toBeLessThan(6 * MIB);
});
