import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');

/** What each part of `src` may import beside itself; `npm:NAME` for packages that only some parts may use. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  fairness: ['domain'],
  store: ['domain'],
  'store/sqlite': ['domain', 'store'],
  'store/mongo': ['domain', 'store', 'npm:mongodb'],
  scheduler: ['domain', 'npm:agenda', 'npm:@agendajs/mongo-backend', 'npm:mongodb'],
  net: ['domain', 'fairness', 'npm:undici'],
  crawler: ['domain', 'fairness', 'net'],
  webhook: ['domain', 'fairness', 'net'],
  threads: ['domain', 'fairness', 'net', 'crawler', 'webhook'],
  mail: ['domain'],
  dispatcher: ['domain', 'fairness', 'store', 'scheduler'],
  service: [
    'domain',
    'fairness',
    'store',
    'scheduler',
    'crawler',
    'webhook',
    'threads',
    'mail',
    'dispatcher',
  ],
  rpc: [
    'domain',
    'fairness',
    'service',
    'gen',
    'npm:@connectrpc/connect',
    'npm:@connectrpc/connect-node',
  ],
  rest: ['domain', 'rpc', 'fairness', 'gen', 'npm:@connectrpc/connect'],
  edge: ['domain', 'fairness', 'rpc', 'rest'],
  console: [],
  cli: [],
};

const guarded = ['mongodb', 'agenda', '@agendajs/mongo-backend', 'undici', '@connectrpc/connect'];

interface Import {
  readonly from: string;
  readonly specifier: string;
}

function sourceFiles(): string[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(root, 'src', name));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  const found = text.matchAll(
    /^(?:import|export)\b[^;'"]*?\bfrom\s+['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gm,
  );
  return [...found].map((match) => ({ from: file, specifier: match[1] ?? match[2] ?? '' }));
}

/** The part a file belongs to; undefined for the files of `src` itself, which wire the parts. */
function partOf(file: string): string | undefined {
  const path = relative(root, file).replaceAll('\\', '/');
  if (path.startsWith('gen/')) return 'gen';
  const parts = Object.keys(arrows).filter((part) => path.startsWith(`src/${part}/`));
  return parts.sort((left, right) => right.length - left.length)[0];
}

function violation({ from, specifier }: Import): string | undefined {
  const part = partOf(from);
  if (part === undefined) return undefined;
  const allowed = arrows[part] ?? [];
  const where = `${relative(root, from)} imports ${specifier}`;
  if (!specifier.startsWith('.')) {
    const name = guarded.find((each) => specifier === each || specifier.startsWith(`${each}/`));
    return name === undefined || allowed.includes(`npm:${name}`) ? undefined : where;
  }
  const target = resolve(dirname(from), specifier);
  const to = partOf(target);
  if (to === undefined) return `${where}: only the files of src itself wire parts`;
  return to === part || allowed.includes(to) ? undefined : where;
}

test('every import follows the arrows between the parts', () => {
  const files = sourceFiles();
  expect(files.length).toBeGreaterThan(50);
  expect(
    files
      .flatMap(importsOf)
      .map(violation)
      .filter((found) => found !== undefined),
  ).toEqual([]);
});

test('every folder of src is a part with arrows of its own', () => {
  const orphans = sourceFiles().filter(
    (file) => partOf(file) === undefined && dirname(file) !== join(root, 'src'),
  );
  expect(orphans.map((file) => relative(root, file))).toEqual([]);
});

test('no file is a bin for odds and ends, and none is too long to read', () => {
  const files = sourceFiles().map((file) => relative(root, file));
  expect(files.filter((file) => /\/(index|utils?|helpers?|common|types)\.ts$/.test(file))).toEqual(
    [],
  );
  const long = files.filter(
    (file) => readFileSync(join(root, file), 'utf8').split('\n').length > 401,
  );
  expect(long).toEqual([]);
});

test('only config.ts is given the environment, and only main.ts ends the process', () => {
  const readers = sourceFiles().filter((file) =>
    /process\.(env|exit)\b/.test(readFileSync(file, 'utf8')),
  );
  const others = readers
    .map((file) => relative(root, file))
    .filter((file) => file !== 'src/main.ts' && !file.startsWith('src/cli/'));
  expect(others).toEqual([]);
});
