import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** A file of the console, in the encodings it is sent in. */
export interface ConsoleFile {
  readonly contentType: string;
  readonly plain: Uint8Array;
  readonly gzip: Uint8Array;
  readonly brotli: Uint8Array;
}

/** The console as a browser loads it. */
export interface ConsoleBundle {
  /** By name; a name has the hash of the content in it. */
  readonly files: ReadonlyMap<string, ConsoleFile>;
  /** The script that starts the console, and its style sheet. */
  readonly script: string;
  readonly style: string;
}

const CONSOLE = fileURLToPath(new URL('../console', import.meta.url));
/** The bundle that the package brings in place of the sources. */
const BUILT = fileURLToPath(new URL('./built', import.meta.url));
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
};

let loading: Promise<ConsoleBundle> | undefined;

/**
 * The console's bundle: that of the package, or made of the sources within about a second. A process
 * makes it once. Rejects when the sources cannot be bundled; the next call tries again.
 */
export function loadConsole(): Promise<ConsoleBundle> {
  return (loading ??= makeBundle().catch((error: unknown) => {
    loading = undefined;
    throw error;
  }));
}

async function makeBundle(): Promise<ConsoleBundle> {
  const built = (await readBuilt()) ?? (await bundleConsole()).files;
  const files = new Map<string, ConsoleFile>();
  for (const [name, content] of built) {
    files.set(name, await compress(content, TYPES[name.split('.').at(-1) ?? ''] ?? ''));
  }
  return { files, script: nameOf(files, /^console-.*\.js$/), style: nameOf(files, /^style-/) };
}

async function readBuilt(): Promise<Map<string, Uint8Array> | undefined> {
  try {
    const names = await readdir(BUILT);
    return new Map(
      await Promise.all(
        names.map(async (name) => [name, await readFile(join(BUILT, name))] as const),
      ),
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Bundles the sources, in a process of its own that ends with it: the files by name, and the paths of what is in them. */
export async function bundleConsole(): Promise<{
  readonly files: Map<string, Uint8Array>;
  readonly inputs: readonly string[];
}> {
  const { build, stop } = await import('esbuild');
  try {
    const { outputFiles, metafile } = await build({
      absWorkingDir: CONSOLE,
      entryPoints: { console: 'main.tsx', style: 'styles/console.css' },
      outdir: '/',
      entryNames: '[name]-[hash]',
      chunkNames: '[name]-[hash]',
      bundle: true,
      splitting: true,
      format: 'esm',
      target: 'es2022',
      jsx: 'automatic',
      jsxImportSource: 'preact',
      minify: true,
      legalComments: 'none',
      write: false,
      metafile: true,
      logLevel: 'silent',
      tsconfigRaw: {},
    });
    const files = new Map(
      outputFiles.map(({ path, contents }) => [path.slice(path.lastIndexOf('/') + 1), contents]),
    );
    return { files, inputs: Object.keys(metafile.inputs).map((path) => join(CONSOLE, path)) };
  } finally {
    await stop();
  }
}

/** A file with its compressed forms. */
export async function compress(plain: Uint8Array, contentType: string): Promise<ConsoleFile> {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
  const [gzipped, brotli] = await Promise.all([
    promisify(gzip)(plain, { level: 9 }),
    promisify(brotliCompress)(plain, quality),
  ]);
  return { contentType, plain, gzip: gzipped, brotli };
}

/** A strong entity tag of a content. */
export function entityTag(content: Uint8Array): string {
  return `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
}

function nameOf(files: ReadonlyMap<string, ConsoleFile>, pattern: RegExp): string {
  const name = [...files.keys()].find((each) => pattern.test(each));
  if (name === undefined) throw new Error(`the bundle has no file like ${pattern}`);
  return name;
}
