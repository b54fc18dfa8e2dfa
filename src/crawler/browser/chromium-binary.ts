import { createReadStream, createWriteStream } from 'node:fs';
import { access, chmod, constants, mkdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';

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
 * The Chromium to run: `CHROMIUM_PATH`, else the one inside the npm package, unpacked once for each user and version, else one
 * installed on this machine. Undefined when there is none; throws when `CHROMIUM_PATH` cannot be run.
 */
export async function findChromium(chromiumPath: string): Promise<string | undefined> {
  if (chromiumPath !== '') {
    await access(chromiumPath, constants.X_OK);
    return chromiumPath;
  }
  return (await unpackedChromium()) ?? (await installedChromium());
}

/** The package carries a Linux program for x64. */
async function unpackedChromium(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  const main = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  const packed = join(dirname(main), '..', 'bin', 'chromium.br');
  const { mtimeMs, size } = await stat(packed);
  // Not a shared folder: another user could put a program there.
  const folder = join(tmpdir(), `queued-crawler-${process.getuid?.() ?? 0}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const owner = await stat(folder);
  if (owner.uid !== process.getuid?.() || (owner.mode & 0o077) !== 0) {
    throw new Error(`${folder} is open to other users`);
  }
  const unpacked = join(folder, `chromium-${size}-${Math.floor(mtimeMs)}`);
  if (await isExecutable(unpacked)) return unpacked;
  // Renamed when it is whole: another process may be doing the same.
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
