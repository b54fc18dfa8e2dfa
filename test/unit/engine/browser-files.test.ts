import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { browserFolder, unpackOnce } from '../../../src/engine/browser/chromium-binary.ts';
import { createProfileFolder } from '../../../src/engine/browser/profile-folders.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const days = (count: number): Date => new Date(Date.now() - count * 24 * 60 * 60_000);

test('a program is unpacked once under its name; others are removed when nobody has used them for a day', async () => {
  await using folder = await temporaryFolder();
  const packed = join(folder.path, 'packed.br');
  await writeFile(packed, brotliCompressSync('program'));
  for (const [name, at] of [
    ['chromium-1', days(2)],
    ['chromium-2.4711', days(2)],
    ['chromium-3', days(0)],
    ['notes', days(9)],
  ] as const) {
    await writeFile(join(folder.path, name), 'old');
    await utimes(join(folder.path, name), at, at);
  }
  const program = await unpackOnce(folder.path, packed, 'chromium-4');
  expect(await readFile(program, 'utf8')).toBe('program');
  const names = ['chromium-3', 'chromium-4', 'notes', 'packed.br'];
  expect((await readdir(folder.path)).toSorted()).toEqual(names);
  // In use since: a newer version that starts does not take it away.
  await utimes(program, days(2), days(2));
  expect(await unpackOnce(folder.path, packed, 'chromium-4')).toBe(program);
  expect((await stat(program)).mtimeMs).toBeGreaterThan(days(1).getTime());
});

test('a folder that others may write to is refused', async () => {
  await using parent = await temporaryFolder();
  const folder = await browserFolder(parent.path);
  await chmod(folder, 0o777);
  await expect(browserFolder(parent.path)).rejects.toThrow('open to other users');
});

test('folders of services that were killed are removed, those in use are not', async () => {
  await using parent = await temporaryFolder();
  const own = await createProfileFolder(parent.path);
  const child = spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)']);
  await once(child, 'spawn');
  const dead = join(parent.path, 'profile-dead');
  const living = join(parent.path, 'profile-living');
  const elsewhere = join(parent.path, 'profile-elsewhere');
  const silent = join(parent.path, 'profile-silent');
  for (const path of [dead, living, elsewhere, silent]) await mkdir(path);
  const [pid, startedAt, namespace] = (await readFile(join(own.path, 'owner'), 'utf8')).split(' ');
  await writeFile(join(living, 'owner'), `${pid} ${startedAt} ${namespace}`);
  // An id that belongs to another process by now.
  await writeFile(join(dead, 'owner'), `${child.pid} 1 ${namespace}`);
  await writeFile(join(elsewhere, 'owner'), `${child.pid} 1 pid:[1]`);
  await writeFile(join(silent, 'owner'), `${child.pid} 1 pid:[1]`);
  await utimes(join(silent, 'owner'), days(1), days(1));
  const next = await createProfileFolder(parent.path);
  expect((await readdir(parent.path)).map((name) => join(parent.path, name)).toSorted()).toEqual(
    [own.path, next.path, living, elsewhere].toSorted(),
  );
  child.kill('SIGKILL');
  await own.remove();
  await next.remove();
  expect(await readdir(parent.path)).toHaveLength(2);
});
