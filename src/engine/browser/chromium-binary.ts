import { execFile } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import {
  access,
  constants,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createBrotliDecompress } from 'node:zlib';
import { DAY_MS } from '../../domain/durations.ts';
import { LIBRARIES_FOLDER, libraryEnvironment } from './chromium-libraries.ts';
import { chromiumPackage } from './chromium-package.ts';
import { unpackedFiles, unpackOnce } from './unpack-once.ts';

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

const VERSION_MS = 10_000;

/**
 * The path of the Chromium to run: `CHROMIUM_PATH`, else that of the npm package, else one that is
 * installed on this machine. The package is unpacked once for each user and version. Undefined when
 * none of them exists; rejects when `CHROMIUM_PATH` cannot be run.
 */
export async function findChromium(chromiumPath: string): Promise<string | undefined> {
  if (chromiumPath !== '') {
    await access(chromiumPath, constants.X_OK);
    return chromiumPath;
  }
  return (await unpackedChromium()) ?? (await installedChromium());
}

/** The major version that a Chromium says it has; undefined when it does not say so in time. */
export async function chromiumMajor(executablePath: string): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(executablePath, ['--version'], {
      env: libraryEnvironment(executablePath),
      timeout: VERSION_MS,
    });
    return /\b(\d+)\.\d+/.exec(stdout)?.[1];
  } catch {
    // It says more when it is started.
    return undefined;
  }
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
  const folder = chromiumPackage();
  if (folder === undefined) return undefined;
  const packed = {
    program: join(folder, 'bin', 'chromium.br'),
    webgl: join(folder, 'bin', 'swiftshader.tar.br'),
    libraries: join(folder, 'bin', 'al2023.tar.br'),
  };
  const { size } = await stat(packed.program);
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    version: string;
  };
  return unpackChromium(await browserFolder(), packed, `browser-libraries-${version}-${size}`);
}

/** What draws WebGL; Chromium looks for it next to its program. */
const WEBGL_FILES = ['libvulkan.so.1', 'libvk_swiftshader.so', 'vk_swiftshader_icd.json'];

/** The archives that make up a Chromium, packed by Brotli. */
interface PackedChromium {
  readonly program: string;
  readonly webgl: string;
  /** The libraries that the system may lack, such as NSS. */
  readonly libraries: string;
}

/**
 * Unpacks Chromium into the folder `name` of `parent` unless it is there, and returns the path of
 * the program. Removes those of other names that were not started for a day; newer ones may belong
 * to another version of the service.
 */
export async function unpackChromium(
  parent: string,
  packed: PackedChromium,
  name: string,
): Promise<string> {
  await removeUnused(parent, name);
  const program = await unpackOnce(parent, { name, file: 'chromium' }, async (part) => {
    const file = join(part, 'chromium');
    await pipeline(
      createReadStream(packed.program),
      createBrotliDecompress(),
      createWriteStream(file, { mode: 0o700 }),
    );
    for (const { path, content } of await unpackedFiles(await readFile(packed.webgl))) {
      if (WEBGL_FILES.includes(path)) await writeFile(join(part, path), content);
    }
    await mkdir(join(part, LIBRARIES_FOLDER));
    for (const { path, content } of await unpackedFiles(await readFile(packed.libraries))) {
      await writeFile(join(part, LIBRARIES_FOLDER, basename(path)), content);
    }
  });
  // Cleaners of temporary folders go by the times of files.
  const now = new Date();
  const folder = join(parent, name);
  for (const each of ['.', ...(await readdir(folder, { recursive: true }))])
    await utimes(join(folder, each), now, now);
  return program;
}

async function removeUnused(folder: string, name: string): Promise<void> {
  for (const each of await readdir(folder)) {
    if (!/^(chromium|browser)-/.test(each) || each === name) continue;
    const path = join(folder, each);
    const { mtimeMs = Date.now() } = (await stat(path).catch(() => undefined)) ?? {};
    if (Date.now() - mtimeMs > DAY_MS) await rm(path, { recursive: true, force: true });
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
