import { stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeFolder } from '../../../src/domain/make-folder.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('a folder is made with those above it, for this user only, also twice at once', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'a', 'b', 'c');
  await Promise.all([makeFolder(path), makeFolder(path)]);
  expect((await stat(path)).mode & 0o777).toBe(0o700);
});

test('a link that leads nowhere is refused', async () => {
  await using folder = await temporaryFolder();
  await symlink(join(folder.path, 'nowhere'), join(folder.path, 'link'));
  await expect(makeFolder(join(folder.path, 'link', 'a'))).rejects.toMatchObject({
    code: 'ENOENT',
  });
});
