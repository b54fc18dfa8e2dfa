import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// What `npm install` does after it has unpacked the packages.

const PROJECT = join(import.meta.dirname, '..', '..');
const SCRIPT = join('scripts', 'first-start.ts');
const run = promisify(execFile);

function firstStart(env: Readonly<Record<string, string>>) {
  const { PATH = '' } = process.env;
  return run(process.execPath, [SCRIPT], { cwd: PROJECT, env: { PATH, ...env } });
}

test('an installation compiles the service, and starts none that is configured', async () => {
  await using cache = await temporaryFolder();
  const { stdout, stderr } = await firstStart({
    NODE_COMPILE_CACHE: cache.path,
    // A start that uses them fails: nothing listens there, and the port is no number.
    MONGODB_URI: 'mongodb://127.0.0.1:9/crawler',
    PORT: 'none',
  });
  expect(stdout + stderr).toBe('');
  const [version = ''] = await readdir(cache.path);
  // The main thread's program has some 1,000 files.
  expect((await readdir(join(cache.path, version))).length).toBeGreaterThan(500);
});

test.each([
  { without: 'a folder for its database', env: { TMPDIR: '/nonexistent' } },
  { without: 'a shell', env: { PATH: '/nonexistent' } },
])(
  'an installation succeeds without $without, and says why it did not compile',
  async ({ env }) => {
    const { stdout } = await firstStart(env);
    expect(stdout).toContain('The service was not compiled in advance: Error: ');
    expect(stdout).toContain('ENOENT');
  },
);

test('an installation that is interrupted leaves nothing behind', async () => {
  await using folder = await temporaryFolder();
  const { PATH = '' } = process.env;
  const env = { PATH, TMPDIR: folder.path };
  const child = spawn(process.execPath, [SCRIPT], { cwd: PROJECT, env, stdio: 'ignore' });
  const ended = once(child, 'exit');
  await eventually(async () => {
    const [data = ''] = await readdir(folder.path);
    expect(await readdir(join(folder.path, data))).toContain('queued-crawler.db');
  });
  child.kill('SIGTERM');
  await ended;
  expect(await readdir(folder.path)).toEqual([]);
});
