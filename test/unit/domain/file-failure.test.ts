import { mkdir, open, readFile, rename, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fileFailure, fileFailureText } from '../../../src/domain/file-failure.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

async function failureOf(work: Promise<unknown>): Promise<Error> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error('it did not fail');
  return error;
}

test('what Node says of files is told as a sentence that names the file', async () => {
  await using folder = await temporaryFolder();
  const at = (...names: string[]): string => join(folder.path, ...names);
  await writeFile(at('file'), 'x');
  await mkdir(at('folder'));
  const cases: readonly [work: () => Promise<unknown>, text: string][] = [
    [() => readFile(at('none')), `there is no file or folder ${at('none')}`],
    // The folder is what is missing, whichever file was to be written into it.
    [() => writeFile(at('no', 'file.part'), ''), `there is no folder ${at('no')}`],
    [() => writeFile(at('folder'), ''), `${at('folder')} is a folder, not a file`],
    [() => mkdir(at('file')), `${at('file')} is a file, not a folder`],
    [() => open(at('file'), 'ax'), `${at('file')} exists already`],
    [
      () => readFile(at('file', 'below')),
      `${at('file', 'below')} cannot be there: a part of this path is a file, not a folder`,
    ],
    // Of a rename, the new name.
    [() => rename(at('file'), at('folder')), `${at('folder')} is a folder, not a file`],
    [() => writeFile(at('n'.repeat(300)), ''), `the name ${at('n'.repeat(300))} is too long`],
  ];
  for (const [work, message] of cases) {
    expect(fileFailure(await failureOf(work()))).toEqual({ message, isWrongPath: true });
  }
  // Reads have no path in their error.
  expect(fileFailureText(await failureOf(readFile(at('folder'))), at('folder'))).toBe(
    `${at('folder')} is a folder, not a file`,
  );
});

test.each([
  ['ENOSPC', 'the disk of /data/x is full', false],
  ['EDQUOT', 'the disk quota for /data/x is used up', false],
  ['EIO', 'the disk of /data/x failed', false],
  ['EMFILE', 'this process has too many open files', false],
  ['EACCES', 'this user may not use /data/x', true],
  ['EROFS', 'the disk of /data/x is read-only', true],
])(
  '%s is told apart from a wrong path where another path does not help',
  (code, message, isWrongPath) => {
    const error = Object.assign(new Error(`${code}: raw`), { code, syscall: 'write' });
    expect(fileFailure(error, '/data/x')).toEqual({ message, isWrongPath });
  },
);

test('errors of ports and others do not concern files', async () => {
  const taken = Object.assign(new Error('listen EACCES: permission denied 0.0.0.0:80'), {
    code: 'EACCES',
    syscall: 'listen',
  });
  expect(fileFailure(taken)).toBeUndefined();
  expect(fileFailureText(taken)).toBe('listen EACCES: permission denied 0.0.0.0:80');
  const server = createServer();
  const refused = await failureOf(
    new Promise((_, reject) => server.once('error', reject).listen(0, '198.51.100.1')),
  );
  expect(fileFailure(refused)).toBeUndefined();
  expect(fileFailure('text')).toBeUndefined();
  expect(fileFailure(new Error('other'))).toBeUndefined();
});
