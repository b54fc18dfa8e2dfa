import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const METRIC = /queued_crawler(?:_[a-z0-9]+)+/g;

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** The names in a row, also those that are written as the end of the first: `_failures_total`. */
function namesOf(row: string): string[] {
  const names = row.match(METRIC) ?? [];
  const ends = [...row.matchAll(/`(_[a-z_]+)`/g)].map(([, end = '']) => end);
  const beginnings = names.flatMap((name) => {
    const parts = name.split('_');
    return parts.map((_part, at) => parts.slice(0, at + 1).join('_'));
  });
  return [...names, ...beginnings.flatMap((each) => ends.map((end) => each + end))];
}

test('each metric is in the tables of docs/operate.md and docs/proxies.md', () => {
  const rows = ['docs/operate.md', 'docs/proxies.md'].flatMap((path) =>
    read(path)
      .split('\n')
      .filter((line) => line.startsWith('| `queued_crawler_')),
  );
  const documented = new Set(rows.flatMap(namesOf));
  const sources = globSync('src/observability/**/*.ts', { cwd: ROOT });
  const made = new Set(sources.flatMap((path) => read(path).match(METRIC) ?? []));
  expect(made.size).toBeGreaterThan(30);
  expect([...made].filter((name) => !documented.has(name))).toEqual([]);
});
