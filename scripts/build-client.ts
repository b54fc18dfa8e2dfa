import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

// `npm run build:client`: makes the package of the TypeScript client in dist/client, with the few
// dependencies that it has. The service itself is no package: Node runs no TypeScript in node_modules.

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist', 'client');
const { version, license, dependencies } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
) as {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
};

rmSync(folder, { recursive: true, force: true });
const typescript = dirname(createRequire(import.meta.url).resolve('typescript/package.json'));
execFileSync(process.execPath, [join(typescript, 'bin', 'tsc'), '-p', 'tsconfig.client.json'], {
  cwd: root,
  stdio: 'inherit',
});
for (const [from, to] of [
  ['LICENSE', 'LICENSE'],
  ['docs/openapi.json', 'openapi.json'],
  ['proto', 'proto'],
] as const) {
  cpSync(join(root, from), join(folder, to), { recursive: true });
}
// Links to files that are not in the package would lead nowhere.
const guide = readFileSync(join(root, 'docs/clients.md'), 'utf8');
writeFileSync(
  join(folder, 'README.md'),
  guide.replaceAll(/\[([^\]]+)\]\((?!https?:)[^)]+\)/g, '$1'),
);
const needed = ['@bufbuild/protobuf', '@connectrpc/connect', '@connectrpc/connect-node'];
const manifest = {
  name: 'queued-crawler-client',
  version,
  description: 'Client of a queued crawler: pushes URLs, reads results, and every other call.',
  license,
  type: 'module',
  exports: {
    '.': { types: './src/client/client.d.ts', default: './src/client/client.js' },
    './gen/*': { types: './gen/*.d.ts', default: './gen/*.js' },
    './openapi.json': './openapi.json',
    './proto/*': './proto/*',
    './package.json': './package.json',
  },
  // The first that takes ES modules in require().
  engines: { node: '>=22.12' },
  // A range, so that a program that has a newer one gets no second copy of it: messages of two copies
  // do not know each other's extensions.
  dependencies: Object.fromEntries(
    needed.map((name) => [name, `^${dependencies[name]?.replace(/^\^/, '')}`]),
  ),
};
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
