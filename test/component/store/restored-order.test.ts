import { join } from 'node:path';
import { expect, test } from 'vitest';
import { backupFolder } from '../../../src/backup/backup-folder.ts';
import { restoreBackup } from '../../../src/backup/restore-backup.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { EXPIRES, makeRecord } from '../../contract/store/outcomes.ts';
import { at, newId } from '../../contract/store/store-harness.ts';
import { silentLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const scope = { accountId: 'a', tokenType: 'normal' } as const;

async function withStore<T>(dataDir: string, use: (store: Store) => Promise<T>): Promise<T> {
  const { store } = await openSqliteStore({ dataDir, logger: silentLogger });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

async function put(store: Store, count: number): Promise<string[]> {
  const rids = Array.from({ length: count }, newId);
  for (const rid of rids) {
    await store.results.put(scope, makeRecord({ rid, url: 'http://a/' }), at(1), EXPIRES);
  }
  return rids;
}

test('a reader who comes back after a restore gets what was stored since, though its place was ahead', async () => {
  await using folder = await temporaryFolder();
  const [dataDir, restored] = ['data', 'restored'].map((name) => join(folder.path, name));
  if (dataDir === undefined || restored === undefined) throw new Error('no folders');
  const file = join(folder.path, 'backup');
  const before = await withStore(dataDir, (store) => put(store, 2));
  await backupFolder({ dataDir, file, onProgress: () => undefined });
  const place = await withStore(dataDir, async (store) => {
    await put(store, 2);
    return (await store.results.following(scope, undefined, 9)).place;
  });
  await restoreBackup({ file, dataDir: restored, replace: false });
  await withStore(restored, async (store) => {
    // As many as were lost, and more: the numbers have come past the reader's place.
    const since = await put(store, 5);
    const { results } = await store.results.following(scope, place, 9);
    expect(results.map(({ rid }) => rid)).toEqual([...before, ...since]);
  });
});
