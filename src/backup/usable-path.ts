import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DomainError } from '../domain/errors.ts';
import { fileFailure, fileFailureText } from '../domain/file-failure.ts';

/** Throws `invalid` unless `path` is a file that this user can read. */
export async function assertReadable(path: string): Promise<void> {
  await checked(path, async () => {
    await access(path, constants.R_OK);
    if (!(await stat(path)).isFile()) throw notFile(path);
  });
}

/**
 * Throws `invalid` unless a file can be written at `path`: its folder is there, and so far there is
 * nothing or a file. Asked before a backup is made, as that may take minutes.
 */
export async function assertWritable(path: string): Promise<void> {
  await checked(path, async () => {
    const folder = dirname(path);
    if (!(await stat(folder)).isDirectory()) throw unusable(`${folder} is a file, not a folder`);
    await access(folder, constants.W_OK | constants.X_OK);
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && !found.isFile()) throw notFile(path);
  });
}

/**
 * Throws `invalid` unless a backup can be written at `path`. It must not be the database of a
 * service: a running one would still write to the file that was replaced.
 */
export async function assertBackupTarget(path: string): Promise<void> {
  await assertWritable(path);
  for (const companion of ['-mark', '-wal']) {
    const found = await stat(path + companion).catch(() => undefined);
    if (found === undefined) continue;
    throw unusable(`${path} is the database of a service: choose another file for the backup`);
  }
}

function notFile(path: string): DomainError {
  return unusable(`${path} is not a file`);
}

async function checked(path: string, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (fileFailure(error) === undefined) throw error;
    throw unusable(fileFailureText(error, path), error);
  }
}

function unusable(message: string, cause?: unknown): DomainError {
  return new DomainError('invalid', 'unusable_path', message, { cause });
}
