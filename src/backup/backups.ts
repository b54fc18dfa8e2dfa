import { readdir, rm, stat, statfs } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { DomainError } from '../domain/errors.ts';
import type { Logger } from '../domain/logger.ts';
import { makeFolder } from '../domain/make-folder.ts';
import type { BackupContent } from './check-backup.ts';
import { type BackupProgress, type CopyDatabase, writeBackup } from './write-backup.ts';

/** A backup in the folder. */
export interface Backup {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  readonly madeAt: Date;
}

/** The backups of an embedded database, made while it is in use. */
export interface Backups {
  /**
   * Makes one. Throws `conflict` while another is made, and `unavailable` when the disk has no room
   * for it.
   */
  make(onProgress?: (progress: BackupProgress) => void): Promise<Backup & BackupContent>;
  /** The newest first. */
  list(): Promise<Backup[]>;
  /** Throws `not_found` when no backup has that name. */
  get(name: string): Promise<Backup>;
  /** Makes backups by themselves from now on. */
  start(): void;
  /** Stops making backups; waits up to `waitMs` for the one in progress. */
  close(waitMs: number): Promise<void>;
}

/** What backups work with. */
export interface BackupsDeps {
  readonly copy: CopyDatabase;
  /** The database that is copied. */
  readonly database: string;
  readonly folder: string;
  /** Number of backups to keep. */
  readonly keep: number;
  /** Time between backups, in milliseconds; 0 turns them off. */
  readonly everyMs: number;
  /** Bytes that a backup leaves free on the disk of the database; below it pushes are refused. */
  readonly minFreeBytes: number;
  readonly logger: Logger;
}

const NAME = /^queued-crawler-[\dTZ]+\.db$/;
/** How often is looked whether a backup is due, and so how soon a failed one is tried again. */
const LOOK_MS = 10 * 60_000;

/** Makes the backups; nothing runs before `start`. */
export function createBackups(deps: BackupsDeps): Backups {
  const { folder, logger } = deps;
  let running: Promise<unknown> | undefined;
  let timer: NodeJS.Timeout | undefined;
  /** When the next is due, by monotonic time; unknown until the backups of before were read. */
  let dueMs: number | undefined;

  async function list(): Promise<Backup[]> {
    const names = (await readdir(folder).catch(() => [])).filter((name) => NAME.test(name));
    const found = await Promise.all(
      names.map(async (name) => {
        const path = join(folder, name);
        // Undefined for one that was removed as the oldest after the folder was read.
        const file = await stat(path).catch(() => undefined);
        return file === undefined ? [] : [{ name, path, bytes: file.size, madeAt: file.mtime }];
      }),
    );
    return found.flat().toSorted((a, b) => (a.name < b.name ? 1 : -1));
  }

  async function makeOne(onProgress: (progress: BackupProgress) => void) {
    const startedAt = performance.now();
    await makeFolder(folder);
    await removeLeftovers(folder);
    await assertRoom(deps);
    const path = join(folder, fileName(new Date()));
    const content = await writeBackup(deps.copy, path, onProgress);
    const { size: bytes, mtime: madeAt } = await stat(path);
    dueMs = performance.now() + deps.everyMs;
    // While the clock is behind, those of before seem to be newer.
    const others = (await list()).filter((each) => each.path !== path);
    const old = others.slice(Math.max(deps.keep - 1, 0));
    for (const each of old) await rm(each.path, { force: true });
    const ms = Math.round(performance.now() - startedAt);
    logger.info({ file: path, bytes, ms, removed: old.length, ...content }, 'a backup was made');
    return { name: basename(path), path, bytes, madeAt, ...content };
  }

  async function makeIfDue(): Promise<void> {
    if (dueMs === undefined) {
      const [newest] = await list();
      const leftMs = (newest?.madeAt.getTime() ?? 0) + deps.everyMs - Date.now();
      dueMs = performance.now() + Math.min(leftMs, deps.everyMs);
    }
    if (running === undefined && performance.now() >= dueMs) await backups.make();
  }

  const backups: Backups = {
    list,
    async get(name) {
      const found = (await list()).find((each) => each.name === name);
      if (found !== undefined) return found;
      throw new DomainError('not_found', 'backup_not_found', 'There is no backup of that name.');
    },
    async make(onProgress = () => undefined) {
      if (running !== undefined) {
        const message = 'A backup is being made; wait until it is done.';
        throw new DomainError('conflict', 'backup_running', message);
      }
      const made = makeOne(onProgress);
      running = made;
      try {
        return await made;
      } finally {
        running = undefined;
      }
    },
    start() {
      if (deps.everyMs === 0) return;
      const look = (): void => {
        makeIfDue().catch((error: unknown) => {
          logger.error({ err: error }, 'a backup was not made');
        });
      };
      timer = setInterval(look, Math.min(deps.everyMs, LOOK_MS));
      look();
    },
    async close(waitMs) {
      clearInterval(timer);
      if (running === undefined) return;
      const late = Promise.withResolvers<void>();
      const limit = setTimeout(late.resolve, waitMs);
      await Promise.race([running.catch(() => undefined), late.promise]);
      clearTimeout(limit);
    },
  };
  return backups;
}

/** `queued-crawler-20261121T213600123Z.db`: their order by name is that by time. */
function fileName(now: Date): string {
  return `queued-crawler-${now.toISOString().replaceAll(/[-:.]/g, '')}.db`;
}

/** What a process left that ended while it made one. */
async function removeLeftovers(folder: string): Promise<void> {
  const parts = (await readdir(folder)).filter((name) => /^queued-crawler-.*\.part/.test(name));
  for (const name of parts) await rm(join(folder, name), { force: true });
}

async function assertRoom({ database, folder, keep, minFreeBytes }: BackupsDeps): Promise<void> {
  const [{ size, dev }, target, { bavail, bsize }] = await Promise.all([
    stat(database),
    stat(folder),
    statfs(folder),
  ]);
  const reserved = dev === target.dev ? minFreeBytes : 0;
  if (bavail * bsize > size * 1.1 + reserved) return;
  const besides = reserved === 0 ? '' : ` and MIN_FREE_BYTES (${reserved})`;
  const needs = `The disk of ${folder} has no room for a backup of ${size} bytes${besides}.`;
  const message = `${needs} The oldest is removed only when a new one is whole, so BACKUP_KEEP=${keep} needs room for ${keep + 1}.`;
  throw new DomainError('unavailable', 'backup_no_room', message);
}
