import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

// Compares the output of the generators with what is committed. Fails with a list of the files that
// differ.

const root = resolve(import.meta.dirname, '..');

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort();
}

function main(): void {
  // Inside the project, so that imports resolve as they do in gen/.
  const fresh = mkdtempSync(join(root, 'node_modules', '.gen-'));
  try {
    const template = readFileSync(join(root, 'buf.gen.yaml'), 'utf8').replace(
      'out: gen',
      `out: ${fresh}`,
    );
    execFileSync('buf', ['generate', '--template', template], { cwd: root, stdio: 'inherit' });
    const expected = filesUnder(fresh);
    const committed = filesUnder(join(root, 'gen'));
    const drifted = [...new Set([...expected, ...committed])].filter((name) => {
      if (!expected.includes(name) || !committed.includes(name)) return true;
      return (
        readFileSync(join(fresh, name), 'utf8') !== readFileSync(join(root, 'gen', name), 'utf8')
      );
    });
    if (drifted.length > 0) {
      console.error(`gen/ is out of date, run "npm run gen": ${drifted.join(', ')}`);
      process.exitCode = 1;
    }
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

main();
