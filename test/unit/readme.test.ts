import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const rpc = readFileSync(join(root, 'docs/rpc.md'), 'utf8');

test('the document of RPC names every method of every service, and no other', () => {
  const offered = globSync(join(root, 'proto/queuedcrawler/v1/*.proto')).flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    const methods = [...text.matchAll(/^ {2}rpc (\w+)\(/gm)].map(([, name]) => name);
    return [...text.matchAll(/^service (\w+) /gm)].map(([, name]) => ({ name, methods }));
  });
  const named = [...rpc.matchAll(/^\| `(\w+Service)` \| (.*) \|$/gm)].map(([, name, text]) => ({
    name,
    methods: text?.replaceAll(/ \([^)]*\)/g, '').split(', '),
  }));
  const sorted = (
    list: readonly { name?: string | undefined; methods?: unknown[] | undefined }[],
  ) => list.map(({ name, methods }) => `${name}: ${methods?.toSorted().join(', ')}`).toSorted();
  expect(sorted(named)).toEqual(sorted(offered));
});

test('what the README links to is there', () => {
  const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path]) => path ?? '');
  expect(links.length).toBeGreaterThan(0);
  expect(links.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('the README is short', () => {
  expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(9 * 1024);
});
