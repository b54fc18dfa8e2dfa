import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '../../src/domain/logger.ts';
import { type OpenSqliteStore, openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { OpenedStore } from './store/store-harness.ts';

const nothing = () => undefined;

/** A logger that says nothing. */
export const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** A temporary folder. */
export interface Folder extends AsyncDisposable {
  readonly path: string;
}

/** Makes a folder that is removed with all it holds when disposed. */
export async function temporaryFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'queued-crawler-store-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Opens the embedded store in a folder. */
export function openIn(folder: Folder): Promise<OpenSqliteStore> {
  return openSqliteStore({ dataDir: folder.path, logger: silent });
}

/** A fresh embedded store for the contract suite. */
export async function openFresh(): Promise<OpenedStore> {
  const folder = await temporaryFolder();
  let opened = await openIn(folder);
  return {
    store: opened.store,
    async reopen() {
      await opened.store.close();
      opened = await openIn(folder);
      return opened.store;
    },
    async close() {
      await opened.store.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}
