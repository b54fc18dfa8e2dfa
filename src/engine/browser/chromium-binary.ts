import { createReadStream, createWriteStream } from 'node:fs';
import {
  access,
  chmod,
  constants,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';
import { DAY_MS } from '../../domain/durations.ts';

const INSTALLED = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome-stable',
  '/usr/bin/google-chrome',
  '/usr/local/bin/chromium',
  '/snap/bin/chromium',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/**
 * The path of the Chromium to run: `CHROMIUM_PATH`, else that of the npm package, which is unpacked
 * once for each user and version, else one that is installed on this machine. Undefined when there
 * is none; rejects when `CHROMIUM_PATH` cannot be run.
 */
export async function findChromium(chromiumPath: string): Promise<string | undefined> {
  if (chromiumPath !== '') {
    await access(chromiumPath, constants.X_OK);
    return chromiumPath;
  }
  return (await unpackedChromium()) ?? (await installedChromium());
}

/**
 * The folder, private to this user, for what browsers need on disk. It is created when it is
 * missing. Rejects when other users may write to it, because they could put a program there.
 */
export async function browserFolder(parent = tmpdir()): Promise<string> {
  const folder = join(parent, `queued-crawler-${process.getuid?.() ?? 0}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const owner = await stat(folder);
  const isOwn = process.getuid === undefined || owner.uid === process.getuid();
  if (!isOwn || (process.platform !== 'win32' && (owner.mode & 0o077) !== 0)) {
    throw new Error(`${folder} is open to other users`);
  }
  return folder;
}

/** The package contains a program for Linux on x64. */
async function unpackedChromium(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  const main = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  const packed = join(dirname(main), '..', 'bin', 'chromium.br');
  const { size } = await stat(packed);
  const { version } = JSON.parse(
    await readFile(join(dirname(main), '..', 'package.json'), 'utf8'),
  ) as { version: string };
  return unpackOnce(await browserFolder(), packed, `chromium-${version}-${size}`);
}

/**
 * Unpacks a program into `folder` unless it is there. Removes programs of other names that were not
 * started for a day; newer ones may belong to another version of the service.
 */
export async function unpackOnce(folder: string, packed: string, name: string): Promise<string> {
  const unpacked = join(folder, name);
  await removeUnused(folder, name);
  if (await isExecutable(unpacked)) {
    const now = new Date();
    await utimes(unpacked, now, now);
    return unpacked;
  }
  // The file gets its name only when it is complete, because another process may unpack at the same
  // time.
  const part = `${unpacked}.${process.pid}`;
  try {
    await pipeline(createReadStream(packed), createBrotliDecompress(), createWriteStream(part));
    await chmod(part, 0o700);
    await rename(part, unpacked);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  return unpacked;
}

async function removeUnused(folder: string, name: string): Promise<void> {
  for (const each of await readdir(folder)) {
    if (!each.startsWith('chromium-') || each === name) continue;
    const path = join(folder, each);
    const { mtimeMs = Date.now() } = (await stat(path).catch(() => undefined)) ?? {};
    if (Date.now() - mtimeMs > DAY_MS) await rm(path, { force: true });
  }
}

async function installedChromium(): Promise<string | undefined> {
  for (const path of INSTALLED) {
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
