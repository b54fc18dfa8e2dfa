import { createHash } from 'node:crypto';
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
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
};

/**
 * Bundles the console in memory, within about a second. The bundler is a process of its own, which
 * ends when the bundle is made. Rejects when the sources cannot be bundled.
 */
export async function bundleConsole(): Promise<ConsoleBundle> {
  const { build, stop } = await import('esbuild');
  try {
    const { outputFiles } = await build({
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
      logLevel: 'silent',
      tsconfigRaw: {},
    });
    const files = new Map<string, ConsoleFile>();
    for (const { path, contents } of outputFiles) {
      const name = path.slice(path.lastIndexOf('/') + 1);
      files.set(name, await compress(contents, TYPES[name.split('.').at(-1) ?? ''] ?? ''));
    }
    return { files, script: nameOf(files, /^console-.*\.js$/), style: nameOf(files, /^style-/) };
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
