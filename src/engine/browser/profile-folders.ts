import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';

/** A folder for what one browser writes. */
export interface ProfileFolder {
  readonly path: string;
  /** Says that it is in use; without this for ten minutes it counts as left behind. */
  touch(): Promise<void>;
  remove(): Promise<void>;
}

const PREFIX = 'profile-';
const OWNER = 'owner';
const ABANDONED_MS = 10 * 60_000;

/**
 * Makes a folder within `parent`, and removes those that services which were killed have left
 * there.
 */
export async function makeProfileFolder(parent: string): Promise<ProfileFolder> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await removeAbandoned(parent);
  const path = await mkdtemp(join(parent, PREFIX));
  await writeFile(join(path, OWNER), await identityOf(process.pid));
  return {
    path,
    async touch() {
      const now = new Date();
      // A folder that is gone is not in use.
      await utimes(join(path, OWNER), now, now).catch(() => undefined);
    },
    async remove() {
      // Processes that have just been killed may still be writing; the next start removes what is
      // left.
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
 * Whether nobody uses a folder: its service has ended, or, where that cannot be told (it ran in
 * another container), has not said otherwise for ten minutes.
 */
async function isAbandoned(path: string): Promise<boolean> {
  const owner = await readFile(join(path, OWNER), 'utf8').catch(() => '');
  const seen = await stat(owner === '' ? path : join(path, OWNER)).catch(() => undefined);
  if (seen !== undefined && Date.now() - seen.mtimeMs > ABANDONED_MS) return true;
  const [pid = '', , namespace] = owner.split(' ');
  if (namespace === undefined || namespace === '-') return false;
  const own = (await identityOf(process.pid)).split(' ')[2];
  return namespace === own && (await identityOf(Number(pid))) !== owner;
}

/**
 * Process id, start time, and the namespace in which that id means something; `-` for what is not
 * known.
 */
async function identityOf(pid: number): Promise<string> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name in parentheses may hold spaces; the start time is the 20th field after it.
  const startedAt = line.slice(line.lastIndexOf(')') + 2).split(' ')[19];
  const namespace = await readlink('/proc/self/ns/pid').catch(() => '-');
  return `${pid} ${startedAt ?? '-'} ${namespace}`;
}
