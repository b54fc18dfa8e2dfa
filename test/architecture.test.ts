import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');

/**
 * What each part of `src` imports in addition to itself and Node: other parts, and `npm:NAME` for
 * packages. A part is a folder, or a file of `src` itself. The list is exact: an import that is not
 * in it fails, and so does an entry that nothing uses.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  domain: ['npm:css-what', 'npm:fastest-levenshtein'],
  fairness: ['domain'],
  store: ['domain'],
  'store/sqlite': ['domain', 'store'],
  'store/mongo': ['domain', 'store', 'npm:mongodb'],
  scheduler: [],
  'scheduler/agenda': ['domain', 'scheduler', 'npm:agenda'],
  'scheduler/sqlite': ['scheduler/agenda'],
  'scheduler/mongo': ['domain', 'scheduler/agenda', 'npm:mongodb'],
  net: ['domain', 'fairness', 'npm:undici', 'npm:ipaddr.js'],
  engine: [
    'domain',
    'fairness',
    'net',
    'npm:@mozilla/readability',
    'npm:devtools-protocol',
    'npm:iconv-lite',
    'npm:linkedom',
    'npm:turndown',
    'npm:parse5',
    'npm:third-party-web',
    'npm:tough-cookie',
  ],
  webhook: ['domain', 'fairness', 'net', 'npm:minizlib'],
  threads: ['domain', 'fairness', 'net', 'engine', 'webhook', 'npm:minizlib'],
  mail: ['domain', 'npm:nodemailer'],
  dispatcher: ['domain', 'fairness', 'store', 'scheduler', 'npm:tinyqueue'],
  service: [
    'domain',
    'fairness',
    'store',
    'scheduler',
    'engine',
    'webhook',
    'threads',
    'mail',
    'dispatcher',
    'npm:saxes',
    'npm:tldts',
  ],
  http: ['fairness', 'net'],
  api: [
    'domain',
    'fairness',
    'http',
    'service',
    'gen',
    'npm:@bufbuild/protobuf',
    'npm:@connectrpc/connect',
  ],
  rpc: [
    'domain',
    'http',
    'api',
    'npm:@bufbuild/protobuf',
    'npm:@connectrpc/connect',
    'npm:@connectrpc/connect-node',
  ],
  rest: ['domain', 'http', 'api', 'gen', 'npm:@bufbuild/protobuf', 'npm:@connectrpc/connect'],
  edge: ['domain', 'http', 'rest', 'npm:ipaddr.js'],
  client: [
    'gen',
    'npm:@bufbuild/protobuf',
    'npm:@connectrpc/connect',
    'npm:@connectrpc/connect-node',
  ],
  mcp: ['client', 'gen', 'npm:@modelcontextprotocol/server', 'npm:zod'],
  cli: [
    'backup',
    'client',
    // For files of this machine.
    'domain',
    'gen',
    'when-orphaned.ts',
    'mcp',
    'npm:@bufbuild/protobuf',
    'npm:commander',
    'npm:warcio',
    'npm:csv-parse',
  ],
  // Runs in the browser: the service only hands it out, bundled by `console-assets`.
  console: [
    'client',
    'gen',
    'npm:@bufbuild/protobuf',
    'npm:@connectrpc/connect',
    'npm:@connectrpc/connect-web',
    'npm:@preact/signals',
    'npm:preact',
    'npm:uplot',
  ],
  'console-assets': ['http', 'rest', 'npm:esbuild'],
  'console-session': ['domain', 'http', 'rest', 'service'],
  config: ['domain', 'net', 'dispatcher', 'service'],
  observability: [
    'domain',
    'fairness',
    'net',
    'store',
    'threads',
    'dispatcher',
    'npm:@opentelemetry/api',
    'npm:@opentelemetry/exporter-trace-otlp-http',
    'npm:@opentelemetry/resources',
    'npm:@opentelemetry/sdk-trace',
    'npm:pino',
    'npm:pino-pretty',
    'npm:prom-client',
  ],
  backend: [
    'domain',
    'config',
    'store',
    'store/sqlite',
    'store/mongo',
    'scheduler/agenda',
    'scheduler/sqlite',
    'scheduler/mongo',
  ],
  backup: ['domain', 'store/sqlite'],
  migrate: [
    'backup',
    'domain',
    'store/sqlite',
    'store/mongo',
    'when-orphaned.ts',
    'npm:mongodb',
    'npm:pino',
  ],
  app: [
    'domain',
    'config',
    'backend',
    'backup',
    'fairness',
    'net',
    'engine',
    'threads',
    'webhook',
    'mail',
    'store',
    'scheduler',
    'scheduler/agenda',
    'service',
    'http',
    'api',
    'client',
    'mcp',
    'rpc',
    'rest',
    'edge',
    'console-assets',
    'console-session',
    'observability',
  ],
  'welcome.ts': ['config', 'app'],
  'when-orphaned.ts': [],
  'idle-memory.ts': [],
  'main.ts': ['config', 'app', 'observability', 'welcome.ts', 'when-orphaned.ts', 'idle-memory.ts'],
};

interface Import {
  readonly from: string;
  readonly specifier: string;
}

function sourceFiles(): string[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(root, 'src', name));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  const found = text.matchAll(
    /^(?:import|export)\b[^;'"]*?\bfrom\s+['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gm,
  );
  return [...found].map((match) => ({ from: file, specifier: match[1] ?? match[2] ?? '' }));
}

/** The part a file belongs to: the longest folder, or the file itself where it stands in `src`. */
function partOf(file: string): string | undefined {
  const path = relative(root, file).replaceAll('\\', '/');
  if (path.startsWith('gen/')) return 'gen';
  const within = path.replace(/^src\//, '');
  const parts = Object.keys(arrows).filter(
    (part) => within === part || within.startsWith(`${part}/`),
  );
  return parts.sort((left, right) => right.length - left.length)[0];
}

/** The arrow that an import is: from its part to another part or a package; undefined within a part and for Node itself. */
function arrowOf({ from, specifier }: Import): { from: string; to: string } | undefined {
  if (specifier.startsWith('node:')) return undefined;
  const part = partOf(from) ?? relative(root, from);
  if (!specifier.startsWith('.')) {
    const names = specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1);
    return { from: part, to: `npm:${names.join('/')}` };
  }
  const to = partOf(resolve(dirname(from), specifier)) ?? specifier;
  return to === part ? undefined : { from: part, to };
}

test('every import follows the arrows between the parts', () => {
  const files = sourceFiles();
  expect(files.length).toBeGreaterThan(50);
  const broken = files.flatMap(importsOf).filter((found) => {
    const arrow = arrowOf(found);
    return arrow !== undefined && !(arrows[arrow.from] ?? []).includes(arrow.to);
  });
  expect(
    broken.map(({ from, specifier }) => `${relative(root, from)} imports ${specifier}`),
  ).toEqual([]);
});

test('every arrow is used, and no two parts import each other', () => {
  const used = new Set(
    sourceFiles()
      .flatMap(importsOf)
      .map(arrowOf)
      .map((arrow) => `${arrow?.from} -> ${arrow?.to}`),
  );
  const allowed = Object.entries(arrows).flatMap(([from, targets]) =>
    targets.map((to) => `${from} -> ${to}`),
  );
  expect(allowed.filter((arrow) => !used.has(arrow))).toEqual([]);
  const above = (part: string, seen: Set<string>): Set<string> => {
    for (const to of arrows[part] ?? []) {
      if (!seen.has(to)) above(to, seen.add(to));
    }
    return seen;
  };
  const circular = Object.keys(arrows).filter((part) => above(part, new Set()).has(part));
  expect(circular).toEqual([]);
});

test('no file is a bin for odds and ends, and none is too long to read', () => {
  const files = sourceFiles().map((file) => relative(root, file));
  expect(
    files.filter((file) => /\/(index|utils?|helpers?|common|types)\.tsx?$/.test(file)),
  ).toEqual([]);
  const long = files.filter(
    (file) => readFileSync(join(root, file), 'utf8').split('\n').length > 401,
  );
  expect(long).toEqual([]);
});

test('only the main.ts of a program has the environment, and ends the process', () => {
  const readers = sourceFiles().filter((file) =>
    /process\.(env|exit)\b/.test(readFileSync(file, 'utf8')),
  );
  const mains = ['src', 'src/cli', 'src/backup', 'src/migrate'].map((each) => `${each}/main.ts`);
  const others = readers
    .map((file) => relative(root, file))
    .filter((file) => !mains.includes(file));
  expect(others).toEqual([]);
});
