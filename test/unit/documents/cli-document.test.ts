import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../../', import.meta.url);

test('docs/cli.md is what the commands say of themselves, each with an example', () => {
  const committed = readFileSync(new URL('docs/cli.md', root), 'utf8');
  // In a process of its own: commander opens the standard streams of the one that imports it.
  const print =
    'import("./scripts/cli-document.ts").then((it) => process.stdout.write(it.cliDocument()))';
  const written = execFileSync(process.execPath, ['-e', print], { cwd: root, encoding: 'utf8' });
  expect(committed, 'run "npm run docs"').toBe(written);
  const sections = committed.split('\n## ').slice(2);
  expect(sections.length).toBeGreaterThan(15);
  const without = sections.filter((section) => !/\$ .*queued-crawler/.test(section));
  expect(without.map((section) => section.split('\n', 1)[0])).toEqual([]);
});
