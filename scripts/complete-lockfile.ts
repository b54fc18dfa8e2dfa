import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

// Adds optional packages of other platforms to package-lock.json; run it after `npm install`. The
// reason: npm omits them when the registry, such as a mirror, does not have them, and `npm ci` then
// rejects the file everywhere. The platform is taken from the name of a package, so that npm can
// skip it.

interface LockEntry {
  version?: string;
  optional?: boolean;
  dev?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'];
const processors: readonly (readonly [part: RegExp, cpu: string])[] = [
  [/arm64/, 'arm64'],
  [/x64/, 'x64'],
  [/ia32/, 'ia32'],
  [/armv7|arm-|arm$/, 'arm'],
  [/ppc64/, 'ppc64'],
  [/riscv64/, 'riscv64'],
  [/s390x/, 's390x'],
];

function toLockEntry(name: string, version: string, dev: boolean): LockEntry {
  const os = systems.find((system) => name.includes(system));
  const cpu = processors.find(([part]) => part.test(name))?.[1];
  if (os === undefined || cpu === undefined) throw new Error(`cannot tell the platform of ${name}`);
  const libc = name.includes('musl') ? { libc: ['musl'] } : {};
  return { version, cpu: [cpu], ...(dev ? { dev } : {}), ...libc, optional: true, os: [os] };
}

const path = join(resolve(import.meta.dirname, '..'), 'package-lock.json');
const lock = JSON.parse(readFileSync(path, 'utf8')) as { packages: Record<string, LockEntry> };
const added: string[] = [];
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] !== undefined || !/^\d/.test(version)) continue;
    lock.packages[key] = toLockEntry(name, version, parent.dev === true);
    added.push(name);
  }
}
if (added.length > 0) {
  const sorted = Object.entries(lock.packages).sort(([left], [right]) => (left < right ? -1 : 1));
  writeFileSync(
    path,
    `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`,
  );
}
console.log(`added ${added.length} optional packages to package-lock.json`);
