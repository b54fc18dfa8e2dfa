import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { isThere } from '../../domain/make-folder.ts';

/**
 * Fills the folder `name` of `parent` unless its `file` is there, and returns the path of `file`.
 * The folder gets its name only when it is complete, because another process may fill it at the
 * same time.
 */
export async function unpackOnce(
  parent: string,
  { name, file }: { readonly name: string; readonly file: string },
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(parent, name);
  const unpacked = join(folder, file);
  if (await isThere(unpacked)) return unpacked;
  const part = `${folder}.${process.pid}`;
  try {
    await mkdir(part, { recursive: true, mode: 0o700 });
    await fill(part);
    await rename(part, folder).catch(async (error: unknown) => {
      if (await isThere(unpacked)) return;
      // What is left of it when something has removed its files one by one.
      if (!(await isThere(folder))) throw error;
      await rm(folder, { recursive: true, force: true });
      await rename(part, folder);
    });
  } finally {
    await rm(part, { recursive: true, force: true });
  }
  return unpacked;
}

const BLOCK = 512;

/** The files of a tar archive that Brotli has packed. */
export async function unpackedFiles(
  packed: Buffer,
): Promise<Iterable<{ path: string; content: Buffer }>> {
  return tarFiles(await promisify(brotliDecompress)(packed));
}

/** The files of a tar archive whose names have up to 100 characters. */
function* tarFiles(tar: Buffer): Generator<{ path: string; content: Buffer }> {
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
