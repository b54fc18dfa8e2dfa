import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

// Runs after `npm install`. The package `node` brings its headers and documents, which nothing here
// needs, and its program under two names, which a copy of the folder would make two programs.

const packages = join(import.meta.dirname, '..', 'node_modules', 'node', 'node_modules');

for (const name of platformPackages()) {
  for (const part of ['include', 'share', 'bin', 'CHANGELOG.md']) {
    rmSync(join(packages, name, part), { recursive: true, force: true });
  }
}

function platformPackages(): string[] {
  try {
    return readdirSync(packages).filter((name) => /^node-\w+-\w+$/.test(name));
  } catch {
    // Installed without its scripts, or laid out otherwise: nothing to remove.
    return [];
  }
}
