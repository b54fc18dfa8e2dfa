import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { releaseEdits } from '../../scripts/release/prepare.ts';
import { isLong } from '../support/length.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

test('a dry run makes what is published, with checksums, and changes nothing', async () => {
  await using folder = await temporaryFolder();
  const watched = ['package.json', 'CHANGELOG.md', 'deploy/helm/Chart.yaml'];
  const texts = (): Promise<string[]> =>
    Promise.all(watched.map((path) => readFile(join(root, path), 'utf8')));
  const before = await texts();
  const { version } = JSON.parse(before[0] ?? '') as { version: string };
  // Client and package have tests of their own that make them; the image takes minutes.
  const without = isLong ? 'client,image' : 'client,image,package';
  const { stdout } = await run(
    process.execPath,
    ['scripts/release.ts', '--dry-run', '--out', folder.path, '--without', without],
    { cwd: root },
  );
  expect(await texts()).toEqual(before);
  const { stdout: checked } = await run('sha256sum', ['--check', 'SHA256SUMS'], {
    cwd: folder.path,
  });
  for (const [name, file] of [
    ['package', `package/queued-crawler-${version}.tgz`],
    ['package', 'package/sbom.cdx.json'],
    ['chart', `chart/queued-crawler-${version}.tgz`],
  ] as const) {
    if (stdout.includes(`LEFT OUT ${name}`)) continue;
    expect(checked).toContain(`${file}: OK`);
  }
});

const files: Readonly<Record<string, string>> = {
  'package.json':
    '{\n  "name": "queued-crawler",\n  "version": "0.9.0",\n  "x": { "version": "1" }\n}\n',
  'package-lock.json':
    '{\n  "name": "queued-crawler",\n  "version": "0.9.0",\n  "packages": {\n    "": {\n      "name": "queued-crawler",\n      "version": "0.9.0"\n    },\n    "node_modules/a": {\n      "version": "0.9.0"\n    }\n  }\n}\n',
  'deploy/helm/Chart.yaml': 'apiVersion: v2\nversion: 0.9.0\nappVersion: 0.9.0\n',
  'clients/python/pyproject.toml': '[project]\nversion = "0.9.0"\n',
  'docs/clients.md':
    'queued-crawler-client-0.9.0.tgz\ndist/queued_crawler-0.9.0-py3-none-any.whl\n',
  'CHANGELOG.md':
    '# Changelog\n\n## Unreleased\n\n### Added\n\n- This.\n\n## 0.9.0 (2026-01-01)\n\n- That.\n',
};
const read = (path: string): string => files[path] ?? '';

test('a release writes its version wherever it stands, and a heading into the changelog', () => {
  const edits = new Map(
    releaseEdits('0.10.0', '2026-02-03', read).map(({ path, text }) => [path, text]),
  );
  expect([...edits.keys()].sort()).toEqual(Object.keys(files).sort());
  expect(JSON.parse(edits.get('package.json') ?? '')).toMatchObject({
    version: '0.10.0',
    x: { version: '1' },
  });
  expect(JSON.parse(edits.get('package-lock.json') ?? '')).toMatchObject({
    version: '0.10.0',
    packages: { '': { version: '0.10.0' }, 'node_modules/a': { version: '0.9.0' } },
  });
  expect(edits.get('deploy/helm/Chart.yaml')).toBe(
    'apiVersion: v2\nversion: 0.10.0\nappVersion: 0.10.0\n',
  );
  expect(edits.get('clients/python/pyproject.toml')).toBe('[project]\nversion = "0.10.0"\n');
  expect(edits.get('docs/clients.md')).toBe(
    'queued-crawler-client-0.10.0.tgz\ndist/queued_crawler-0.10.0-py3-none-any.whl\n',
  );
  expect(edits.get('CHANGELOG.md')).toBe(
    '# Changelog\n\n## Unreleased\n\n## 0.10.0 (2026-02-03)\n\n### Added\n\n- This.\n\n## 0.9.0 (2026-01-01)\n\n- That.\n',
  );
});

test.each([
  ['0.9.0', 'not higher'],
  ['0.8.9', 'not higher'],
  ['next', 'no version'],
])('a release of %s is refused', (version, reason) => {
  expect(() => releaseEdits(version, '2026-02-03', read)).toThrow(reason);
});

test('a release without a change is refused', () => {
  const empty = (path: string): string =>
    path === 'CHANGELOG.md' ? '# Changelog\n\n## Unreleased\n\n## 0.9.0\n\n- That.\n' : read(path);
  expect(() => releaseEdits('1.0.0', '2026-02-03', empty)).toThrow('nothing unreleased');
});
