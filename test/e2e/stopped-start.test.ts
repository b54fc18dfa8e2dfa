import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { TEST_SETTINGS } from '../support/test-settings.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Starts the service, and sends it SIGTERM when it opens its database. */
async function stopWhileStarting(dataDir: string) {
  // The first thing that the log tells of the database.
  await chmod(dataDir, 0o777);
  const { PATH } = process.env;
  const env = { PATH, ...TEST_SETTINGS, DATA_DIR: dataDir, LOG_LEVEL: 'info' };
  const child = spawn(process.execPath, ['src/main.ts'], { cwd: ROOT, env });
  let log = '';
  let told = '';
  child.stdout.on('data', (chunk: Buffer) => {
    log += chunk.toString();
    // Once, because a second signal ends the process at once.
    if (!child.killed && log.includes('chmod 700')) child.kill('SIGTERM');
  });
  child.stderr.on('data', (chunk: Buffer) => {
    told += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, afterStop: log.slice(log.indexOf('"stopping"')), told };
}

test('a service that is stopped while it starts does not say that it started', async () => {
  await using folder = await temporaryFolder();
  {
    await using service = await startProcess({ DATA_DIR: folder.path });
    await service.terminate();
  }
  const { code, afterStop, told } = await stopWhileStarting(folder.path);
  expect(code).toBe(0);
  expect(afterStop).toContain('"stopped"');
  expect(afterStop).not.toContain('"started"');
  expect(told).toBe('');
});

test('a first start that is stopped tells of the account that it made', async () => {
  await using folder = await temporaryFolder();
  const { code, afterStop, told } = await stopWhileStarting(folder.path);
  expect(code).toBe(0);
  expect(afterStop).not.toContain('"started"');
  expect(told).toContain('Made account "default"');
});
