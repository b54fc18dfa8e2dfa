import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { browserFolder, unpackChromium } from '../../../src/engine/browser/chromium-binary.ts';
import { createProfileFolder } from '../../../src/engine/browser/profile-folders.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const days = (count: number): Date => new Date(Date.now() - count * 24 * 60 * 60_000);

test('Chromium, what draws WebGL and its libraries are unpacked once into a folder; others are removed when nobody has used them for a day', async () => {
  await using parent = await temporaryFolder();
  const at = (...names: string[]): string => join(parent.path, ...names);
  const packed = {
    program: at('packed.br'),
    webgl: at('packed.tar.br'),
    libraries: at('libraries.tar.br'),
  };
  await writeFile(packed.program, brotliCompressSync('program'));
  await mkdir(at('tar'));
  for (const name of ['libvulkan.so.1', 'libother.so']) await writeFile(at('tar', name), name);
  const tar = execFileSync('tar', ['-C', at('tar'), '-c', 'libvulkan.so.1', 'libother.so']);
  await writeFile(packed.webgl, brotliCompressSync(tar));
  const libraries = execFileSync('tar', ['-C', parent.path, '-c', 'tar/libother.so']);
  await writeFile(packed.libraries, brotliCompressSync(libraries));
  for (const [name, age] of [
    ['browser-1', 2],
    ['browser-2.4711', 2],
    ['browser-3', 0],
    ['notes', 9],
  ] as const) {
    await mkdir(at(name));
    await writeFile(at(name, 'chromium'), 'old');
    await utimes(at(name), days(age), days(age));
  }
  // As earlier versions of the service unpacked it.
  await writeFile(at('chromium-1'), 'old');
  await utimes(at('chromium-1'), days(2), days(2));

  const program = await unpackChromium(parent.path, packed, 'browser-4');
  expect(await readFile(program, 'utf8')).toBe('program');
  expect((await stat(program)).mode & 0o777).toBe(0o700);
  expect((await readdir(at('browser-4'))).toSorted()).toEqual([
    'chromium',
    'libraries',
    'libvulkan.so.1',
  ]);
  expect(await readdir(at('browser-4', 'libraries'))).toEqual(['libother.so']);
  const names = [
    'browser-3',
    'browser-4',
    'libraries.tar.br',
    'notes',
    'packed.br',
    'packed.tar.br',
    'tar',
  ];
  expect((await readdir(parent.path)).toSorted()).toEqual(names);

  // In use since: neither a newer version that starts nor a cleaner takes it away.
  for (const each of [program, at('browser-4')]) await utimes(each, days(2), days(2));
  expect(await unpackChromium(parent.path, packed, 'browser-4')).toBe(program);
  for (const each of [program, at('browser-4')]) {
    expect((await stat(each)).mtimeMs).toBeGreaterThan(days(1).getTime());
  }
  // A cleaner took the program only.
  await rm(program);
  expect(await unpackChromium(parent.path, packed, 'browser-4')).toBe(program);
  expect(await readFile(program, 'utf8')).toBe('program');
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
  const owner = await readFile(join(own.path, 'owner'), 'utf8');
  const [boot, namespace] = owner.split('/');
  await writeFile(join(living, 'owner'), owner);
  // An id that belongs to another process by now.
  await writeFile(join(dead, 'owner'), `${boot}/${namespace}/${child.pid}/1`);
  await writeFile(join(elsewhere, 'owner'), `${boot}/pid:[1]/${child.pid}/1`);
  await writeFile(join(silent, 'owner'), `${boot}/pid:[1]/${child.pid}/1`);
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
