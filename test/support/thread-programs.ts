import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import type { TestProject } from 'vitest/node';
import { isLong } from './length.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URLs of the service's thread programs, each with that of the program in one file. */
    threadPrograms: Readonly<Record<string, string>>;
  }
}

const ROOT = resolve(import.meta.dirname, '..', '..');
const FOLDER = join(ROOT, 'node_modules', '.cache', 'thread-programs');

const PROGRAMS = [
  'src/backup/check-thread.ts',
  'src/store/sqlite/thread/database-worker.ts',
  'src/store/sqlite/thread/sync-worker.ts',
  'src/threads/body-thread.ts',
  'src/threads/crawl-thread.ts',
  'src/threads/document-thread.ts',
].map((path) => join(ROOT, path));

/** Packages that read files of their own. */
const EXTERNAL = ['chardetng-wasm'];

let programs: Promise<Readonly<Record<string, string>>> | undefined;

/**
 * Puts each thread program of the service into one file: a run starts a thousand threads, and half of
 * the time of a start is the reading of its modules. At full length threads run as the service has them.
 */
export async function setup(project: TestProject): Promise<void> {
  programs ??= isLong ? Promise.resolve({}) : bundle();
  project.provide('threadPrograms', await programs);
}

async function bundle(): Promise<Readonly<Record<string, string>>> {
  await mkdir(FOLDER, { recursive: true });
  const { outputFiles } = await build({
    entryPoints: PROGRAMS,
    outdir: FOLDER,
    outExtension: { '.js': '.mjs' },
    entryNames: '[name]',
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    keepNames: true,
    external: EXTERNAL,
    // Packages of the old module format call it.
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
    plugins: [ownPlaces],
  });
  // Other runs may be reading them.
  for (const { path, contents } of outputFiles) {
    const written = `${path}.${process.pid}`;
    await writeFile(written, contents);
    await rename(written, path);
  }
  return Object.fromEntries(
    PROGRAMS.map((path) => [pathToFileURL(path).href, pathToFileURL(inOneFile(path)).href]),
  );
}

function inOneFile(path: string): string {
  return join(FOLDER, `${basename(path, '.ts')}.mjs`);
}

/** Modules keep their own address, and find the programs of further threads. */
const ownPlaces: Plugin = {
  name: 'own-places',
  setup(builder) {
    builder.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const contents = text
        .replaceAll(/new URL\('(\.\/[\w-]+\.ts)', import\.meta\.url\)/g, (found, name: string) => {
          const program = resolve(path, '..', name);
          return PROGRAMS.includes(program)
            ? `new URL(${JSON.stringify(pathToFileURL(inOneFile(program)).href)})`
            : found;
        })
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.dirname', JSON.stringify(resolve(path, '..')));
      return { contents, loader: 'ts' };
    });
  },
};
