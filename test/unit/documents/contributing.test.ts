import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../../..');
const text = readFileSync(resolve(root, 'CONTRIBUTING.md'), 'utf8');
const quoted = [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');

test('the glossary names files that exist', () => {
  const glossary = readFileSync(resolve(root, 'docs/glossary.md'), 'utf8');
  const files = [...glossary.matchAll(/`([\w./-]+\.ts|[\w-]+\/[\w/-]+)`/g)].map(
    (match) => match[1] ?? '',
  );
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter((path) => !existsSync(resolve(root, 'src', path)))).toEqual([]);
  const linked = [...glossary.matchAll(/\]\(([^)]+)\)/g)].map((match) => match[1] ?? '');
  expect(linked.filter((path) => !existsSync(resolve(root, 'docs', path)))).toEqual([]);
});

test('CONTRIBUTING.md names files that exist', () => {
  const paths = quoted.filter((words) => /^[\w./-]+$/.test(words) && /\/|\.(ts|md)$/.test(words));
  expect(paths.length).toBeGreaterThan(40);
  // Names of one file in each store, and of an imaginary test, stand alone.
  const alone = ['finish.ts', 'queue.ts', 'deliveries.ts', 'crawlers.ts'];
  const missing = paths.filter(
    (path) =>
      !alone.includes(path) &&
      !existsSync(resolve(root, path)) &&
      !existsSync(resolve(root, 'src', path)),
  );
  expect(missing).toEqual([]);
  const linked = [...text.matchAll(/\]\(([^)]+)\)/g)].map((match) => match[1] ?? '');
  expect(linked.filter((path) => !existsSync(resolve(root, path)))).toEqual([]);
});

test('CONTRIBUTING.md lists every script, but for single benchmarks', () => {
  const { scripts } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const named = new Set(quoted.flatMap((words) => words.replace(/^npm (run )?/, '').split(' ')[0]));
  expect(
    Object.keys(scripts).filter((name) => !named.has(name) && !name.startsWith('bench:')),
  ).toEqual([]);
});
