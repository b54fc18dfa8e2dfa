import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { bundleConsole } from '../src/console-assets/bundle-console.ts';
import { compileSources } from './package/compile-sources.ts';
import { licensesDocument, packagesOf } from './package/licenses.ts';
import {
  OLDEST_NODE,
  type ProjectManifest,
  packageManifest,
  repositoryUrl,
} from './package/manifest.ts';
import { packageReadme } from './package/readme.ts';
import { sbomDocument } from './package/sbom.ts';
import { vendorPackages } from './package/vendor-packages.ts';

// `npm run build:package [-- FOLDER]`: makes the package of the service, in dist/package, for `npm pack`. Node
// runs no TypeScript in node_modules, so the sources are compiled, each file by itself. What they
// need of other packages is bundled, at the versions of package-lock.json.

const root = join(import.meta.dirname, '..');
const folder = resolve(process.argv[2] ?? join(root, 'dist', 'package'));
const project = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as ProjectManifest;

await rm(folder, { recursive: true, force: true });

const sources = await below(
  'src',
  /\.(?:ts|js|html|css)$/,
  (path) => !path.startsWith('src/console/'),
);
const generated = await below('gen', /\.ts$/);
const isSource = (path: string): boolean => path.endsWith('.ts');
const { packages } = await compileSources(
  root,
  [...sources.filter(isSource), ...generated],
  folder,
);
const vendored = await vendorPackages(root, packages, folder);
const site = await bundleConsole();

// Scripts and documents that a browser loads.
for (const path of sources.filter((each) => !isSource(each))) await copy(path);
for (const [name, content] of site.files) {
  await write(join('src', 'console-assets', 'built', name), content);
}
for (const path of await below('docs', /\.(?:md|json|svg)$/)) await copy(path);
for (const path of ['proto', 'CHANGELOG.md', 'LICENSE', 'SECURITY.md']) await copy(path);

for (const [name, content] of Object.entries(await programs())) {
  await write(join('bin', name), content);
  await chmod(join(folder, 'bin', name), 0o755);
}
const packaged = await packagesOf([...vendored, ...site.inputs]);
await write('THIRD-PARTY-LICENSES.md', await licensesDocument(packaged));
await write('sbom.cdx.json', toJson(sbomDocument(project, packaged)));
await write(
  'README.md',
  packageReadme(await readFile(join(root, 'README.md'), 'utf8'), (path) =>
    existsSync(join(folder, path)),
  ),
);
const manifest = packageManifest(project, repositoryUrl(project, process.env));
await write('package.json', toJson(manifest));

/** The programs of `bin`, which check the version of Node before anything that an older one cannot read. */
async function programs(): Promise<Record<string, string>> {
  const check = await readFile(join(root, 'scripts', 'package', 'check-node.js'), 'utf8');
  return {
    'check-node.js': check.replace("'OLDEST_NODE'", `'${OLDEST_NODE}'`),
    'queued-crawler.js': await readFile(
      join(root, 'scripts', 'package', 'queued-crawler.js'),
      'utf8',
    ),
    'start.js': "import './check-node.js';\n\nawait import('../src/main.js');\n",
  };
}

function toJson(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

async function below(
  part: string,
  wanted: RegExp,
  isWanted: (path: string) => boolean = () => true,
): Promise<string[]> {
  const names = await readdir(join(root, part), { recursive: true });
  return names
    .map((name) => `${part}/${name.replaceAll('\\', '/')}`)
    .filter((path) => wanted.test(path) && isWanted(path))
    .sort();
}

async function copy(path: string): Promise<void> {
  await cp(join(root, path), join(folder, path), { recursive: true });
}

async function write(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), content);
}
