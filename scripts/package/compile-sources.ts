import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { NODE_TARGET } from './manifest.ts';

/** Where the packages of others are, below the package's folder. */
export const VENDOR = 'vendor';

/** What the compiled sources need of the packages that the project depends on. */
export interface Needed {
  /** Specifiers of imports, such as `@bufbuild/protobuf/wkt`. */
  readonly packages: ReadonlySet<string>;
}

/** Globals that the sources use and the oldest Node does not have. */
const MISSING_GLOBALS = {
  AsyncDisposableStack: 'core-js-pure/actual/async-disposable-stack/index.js',
  DisposableStack: 'core-js-pure/actual/disposable-stack/index.js',
};

/** The file of {@link VENDOR} that stands for a specifier. */
export const vendorFile = (specifier: string): string =>
  `${specifier.replace(/\.js$/, '').replaceAll(/[^\w.-]+/g, '_')}.js`;

/**
 * Compiles each of `files` (paths below `root`) to a JavaScript file at the same place below
 * `folder`. Files stay single, because threads and documents are found by their place. Imports of
 * packages become imports of {@link VENDOR}; files of packages that the sources read are copied there.
 */
export async function compileSources(
  root: string,
  files: readonly string[],
  folder: string,
): Promise<Needed> {
  const packages = new Set<string>();
  const require = createRequire(join(root, 'package.json'));

  /** The path of a file of {@link VENDOR} for an importer of the sources. */
  const fromSource = (importer: string, name: string): string => {
    const path = relative(dirname(importer), join(root, VENDOR, name)).replaceAll('\\', '/');
    return path.startsWith('.') ? path : `./${path}`;
  };

  const single: Plugin = {
    name: 'single-files',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /.*/ }, ({ path, importer, kind }) => {
        if (kind === 'entry-point') return undefined;
        if (path.startsWith('node:')) return { path, external: true };
        if (path.startsWith('.')) return { path: toJavaScript(path), external: true };
        // The console's bundler, which is imported only where the bundle is not there yet.
        if (path === 'esbuild') return { path, external: true };
        packages.add(path);
        return { path: fromSource(importer, vendorFile(path)), external: true };
      });
      onLoad({ filter: /\.[jt]s$/ }, async ({ path }) => {
        let contents = await readFile(path, 'utf8');
        // Threads are found by the name of their file.
        contents = contents.replaceAll(
          /new URL\('([./][^']*\.ts)', import\.meta\.url\)/g,
          (_all, file: string) => `new URL('${toJavaScript(file)}', import.meta.url)`,
        );
        for (const [name, specifier] of Object.entries(MISSING_GLOBALS)) {
          if (!contents.includes(`new ${name}(`)) continue;
          contents = `import ${name} from '${specifier}';\n${contents}`;
        }
        for (const [all, specifier = ''] of contents.matchAll(
          /import\.meta\.resolve\('([^']+)'\)/g,
        )) {
          const name = basename(specifier);
          await mkdir(join(folder, VENDOR), { recursive: true });
          await copyFile(require.resolve(specifier), join(folder, VENDOR, name));
          packages.add(specifier);
          contents = contents.replace(
            all,
            `new URL('${fromSource(path, name)}', import.meta.url).href`,
          );
        }
        return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
      });
    },
  };

  await build({
    absWorkingDir: root,
    entryPoints: [...files],
    outbase: root,
    outdir: folder,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: NODE_TARGET,
    charset: 'utf8',
    legalComments: 'none',
    plugins: [single],
    logLevel: 'warning',
  });
  return { packages };
}

function toJavaScript(path: string): string {
  return path.replace(/\.tsx?$/, '.js');
}
