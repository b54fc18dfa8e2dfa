import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { TEST_SETTINGS } from '../support/test-settings.ts';

const PROJECT = join(import.meta.dirname, '..', '..');

/** Holds the service up before it loads its program, until the file `go` is there. */
const HOLD = `
  import { existsSync, writeSync } from 'node:fs';
  import { registerHooks } from 'node:module';
  registerHooks({
    load(url, context, next) {
      if (url.endsWith('/src/main.ts')) {
        writeSync(1, process.pid + '\\n');
        const cell = new Int32Array(new SharedArrayBuffer(4));
        while (!existsSync(process.env.TEST_GO)) Atomics.wait(cell, 0, 0, 10);
      }
      return next(url, context);
    },
  });
`;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('a service whose npm has ended while it loaded stops by itself', async () => {
  await using folder = await temporaryFolder();
  const go = join(folder.path, 'go');
  const { PATH = '' } = process.env;
  const env = {
    PATH,
    ...TEST_SETTINGS,
    DATA_DIR: folder.path,
    npm_lifecycle_event: 'start',
    TEST_GO: go,
  };
  const service = [
    '--import',
    `data:text/javascript,${encodeURIComponent(HOLD)}`,
    join('bin', 'start.js'),
  ];
  const parent = spawn(
    process.execPath,
    [
      '-e',
      `require('node:child_process').spawn(process.execPath, ${JSON.stringify(service)}, { stdio: 'inherit' })`,
    ],
    { cwd: PROJECT, env, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  try {
    const ended = once(parent, 'exit');
    parent.kill('SIGKILL');
    await ended;
    await writeFile(go, '');
    await eventually(() => expect(isAlive(pid)).toBe(false));
  } finally {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  }
});
