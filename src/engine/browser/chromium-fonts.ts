import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chromiumPackage } from './chromium-package.ts';
import { unpackedFiles, unpackOnce } from './unpack-once.ts';

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
  return unpackOnce(folder, { name, file: 'fonts.conf' }, async (part) => {
    for (const { path, content } of await unpackedFiles(packed)) {
      const [, base] = FONTS.exec(path) ?? [];
      if (base !== undefined) await writeFile(join(part, base), content);
    }
    await writeFile(join(part, 'fonts.conf'), fontsConfig(folder, join(folder, name)));
  });
}

async function readPackedFonts(): Promise<Buffer | undefined> {
  const folder = chromiumPackage();
  if (folder === undefined) return undefined;
  try {
    return await readFile(join(folder, 'bin', 'fonts.tar.br'));
  } catch {
    // The package has no fonts.
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
