import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';

const FONTS = /^fonts\/(?:[\w-]+\/)*([\w-]+\.[ot]tf)$/;

/**
 * Unpacks the fonts of the npm package into `folder`, unless they are there, for machines that have
 * none. Returns a fontconfig file with which Chromium finds these and the fonts of the machine;
 * undefined where the package has none.
 */
export async function prepareFonts(folder: string): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  const packed = await readPackedFonts();
  if (packed === undefined) return undefined;
  const name = `fonts-${createHash('sha256').update(packed).digest('hex').slice(0, 16)}`;
  const unpacked = join(folder, name);
  const file = join(unpacked, 'fonts.conf');
  if (await exists(file)) return file;
  // The folder gets its name only when it is complete, because another process may unpack at the
  // same time.
  const part = `${unpacked}.${process.pid}`;
  await mkdir(part, { recursive: true, mode: 0o700 });
  const tar = await promisify(brotliDecompress)(packed);
  for (const { path, content } of tarFiles(tar)) {
    const [, base] = FONTS.exec(path) ?? [];
    if (base !== undefined) await writeFile(join(part, base), content);
  }
  await writeFile(join(part, 'fonts.conf'), fontsConfig(folder, unpacked));
  try {
    await rename(part, unpacked);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    if (!(await exists(file))) throw error;
  }
  return file;
}

async function readPackedFonts(): Promise<Buffer | undefined> {
  try {
    const main = createRequire(import.meta.url).resolve('@sparticuz/chromium');
    return await readFile(join(dirname(main), '..', 'bin', 'fonts.tar.br'));
  } catch {
    // The package is not installed, or has no fonts.
    return undefined;
  }
}

function fontsConfig(folder: string, fonts: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>/usr/share/fonts</dir>
  <dir>/usr/local/share/fonts</dir>
  <dir>${fonts}</dir>
  <cachedir>${join(folder, 'font-cache')}</cachedir>
</fontconfig>
`;
}

const BLOCK = 512;

/** The files of a tar archive whose names have up to 100 characters. */
export function* tarFiles(tar: Buffer): Generator<{ path: string; content: Buffer }> {
  for (let at = 0; at + BLOCK <= tar.length; ) {
    const text = (from: number, length: number): string =>
      tar.toString('latin1', at + from, at + from + length).replace(/\0.*$/s, '');
    const path = text(0, 100);
    if (path === '') return;
    const size = Number.parseInt(text(124, 12), 8) || 0;
    const isFile = ['', '0'].includes(text(156, 1));
    at += BLOCK;
    if (isFile) yield { path, content: tar.subarray(at, at + size) };
    at += Math.ceil(size / BLOCK) * BLOCK;
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
