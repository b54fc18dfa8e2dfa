import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';
import { VENDOR, vendorFile } from './compile-sources.ts';
import { NODE_TARGET } from './manifest.ts';

/** CommonJS modules expect these names; a module of ECMAScript has none of them. */
const COMMONJS_NAMES = `import { createRequire as vendorRequire } from 'node:module';
import { dirname as vendorDirname } from 'node:path';
import { fileURLToPath as vendorPath } from 'node:url';
const require = vendorRequire(import.meta.url);
const __filename = vendorPath(import.meta.url);
const __dirname = vendorDirname(__filename);
`;

/**
 * Bundles the packages of others into {@link VENDOR} of `folder`: a file for each of `specifiers`.
 * What several of them need is in files that they share, so that each module exists once.
 * Returns the paths of the files that are in it.
 */
export async function vendorPackages(
  root: string,
  specifiers: Iterable<string>,
  folder: string,
): Promise<string[]> {
  const { resolve } = createRequire(join(root, 'package.json'));
  // Below the project, so that packages are found from there.
  await mkdir(join(root, 'dist'), { recursive: true });
  const entries = await mkdtemp(join(root, 'dist', 'vendor-'));
  try {
    const names: string[] = [];
    for (const specifier of specifiers) {
      if (isData(specifier)) continue;
      const name = vendorFile(specifier).replace(/\.js$/, '.mjs');
      await writeFile(join(entries, name), await reexport(specifier));
      names.push(join(entries, name));
    }
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: names,
      outdir: join(folder, VENDOR),
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      // As Node resolves them.
      conditions: [],
      mainFields: ['main'],
      target: NODE_TARGET,
      charset: 'utf8',
      minifyWhitespace: true,
      legalComments: 'none',
      banner: { js: COMMONJS_NAMES },
      external: OPTIONAL,
      metafile: true,
      logLevel: 'warning',
    });
    const bundled = Object.keys(metafile.inputs).map((path) => join(root, path));
    return [...bundled, ...[...specifiers].filter(isData).map((each) => resolve(each))];
  } finally {
    await rm(entries, { recursive: true, force: true });
  }
}

/** Files that are copied as they are. */
const isData = (specifier: string): boolean => specifier.endsWith('.wasm');

/** Packages that those here load if they are installed; the project does without them. */
const OPTIONAL = [
  '@aws-sdk/*',
  '@mongodb-js/zstd',
  'canvas',
  'gcp-metadata',
  'kerberos',
  'mongodb-client-encryption',
  'snappy',
  'socks',
];

/** A module with all that a package exports by name. Of CommonJS packages the bundler cannot tell the names. */
async function reexport(specifier: string): Promise<string> {
  const found = (await import(specifier)) as object;
  const names = Object.keys(found).filter((name) => name !== 'module.exports');
  return `export { ${names.join(', ')} } from '${specifier}';\n`;
}
