import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasEnded, osProcessName } from '../../domain/os-process.ts';

/** The profile folder of one browser. */
export interface ProfileFolder {
  readonly path: string;
  /** Marks it as in use; after ten minutes without this it counts as abandoned. */
  touch(): Promise<void>;
  remove(): Promise<void>;
}

const PREFIX = 'profile-';
const OWNER = 'owner';
const ABANDONED_MS = 10 * 60_000;

/** Creates a folder in `parent`, and removes those that killed services have left there. */
export async function createProfileFolder(parent: string): Promise<ProfileFolder> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await removeAbandoned(parent);
  const path = await mkdtemp(join(parent, PREFIX));
  await writeFile(join(path, OWNER), osProcessName() ?? '-');
  return {
    path,
    async touch() {
      const now = new Date();
      // The folder was removed.
      await utimes(join(path, OWNER), now, now).catch(() => undefined);
    },
    async remove() {
      // Processes that were just killed may still write; the next start removes what is left.
      await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }).catch(
        () => undefined,
      );
    },
  };
}

async function removeAbandoned(parent: string): Promise<void> {
  const names = await readdir(parent).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(PREFIX))) {
    const path = join(parent, name);
    if (await isAbandoned(path))
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/**
 * Whether nobody uses a folder: its service has ended, or has not touched it for ten minutes, which
 * is all that is known of a service in another container.
 */
async function isAbandoned(path: string): Promise<boolean> {
  const owner = await readFile(join(path, OWNER), 'utf8').catch(() => '');
  const seen = await stat(owner === '' ? path : join(path, OWNER)).catch(() => undefined);
  if (seen !== undefined && Date.now() - seen.mtimeMs > ABANDONED_MS) return true;
  return hasEnded(owner);
}
