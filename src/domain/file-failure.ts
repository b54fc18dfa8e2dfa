import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { errorText } from './error-text.ts';

/** Why a file or folder cannot be used. */
export interface FileFailure {
  /** A sentence for people, without a full stop. It names the file where that is known. */
  readonly message: string;
  /** Whether the path is wrong. Otherwise the machine lacks something, such as room on its disk. */
  readonly isWrongPath: boolean;
}

/** What Node tells of a failed call of the system. */
interface SystemError {
  readonly code?: string;
  readonly syscall?: string;
  readonly path?: string;
  readonly dest?: string;
}

/** Calls that fail with the codes of files, and concern none. */
const OTHER_CALLS = /^(?:listen|bind|connect|getaddrinfo|kill|spawn)/;

const WRONG_PATHS: Readonly<Record<string, (path: string, syscall: string) => string>> = {
  ENOENT: missing,
  ENOTDIR: (path) => `${path} cannot be there: a part of this path is a file, not a folder`,
  EISDIR: (path) => `${path} is a folder, not a file`,
  EEXIST: (path, syscall) =>
    syscall === 'mkdir' ? `${path} is a file, not a folder` : `${path} exists already`,
  ENOTEMPTY: (path) => `the folder ${path} is not empty`,
  EACCES: (path) => `this user may not use ${path}`,
  EPERM: (path) => `this user may not use ${path}`,
  EROFS: (path) => `the disk of ${path} is read-only`,
  ENAMETOOLONG: (path) => `the name ${path} is too long`,
  ELOOP: (path) => `${path} leads through too many symbolic links`,
};

const OF_MACHINE: Readonly<Record<string, (path: string) => string>> = {
  ENOSPC: (path) => `the disk of ${path} is full`,
  EDQUOT: (path) => `the disk quota for ${path} is used up`,
  EIO: (path) => `the disk of ${path} failed`,
  EMFILE: () => 'this process has too many open files',
  ENFILE: () => 'this machine has too many open files',
};

/**
 * Tells what Node's error of a file or folder says; undefined for other errors. `path` is that of
 * the file where the error has none, as in reads and writes.
 */
export function fileFailure(error: unknown, path?: string): FileFailure | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = '', syscall = '', path: named, dest } = error as Error & SystemError;
  if (OTHER_CALLS.test(syscall)) return undefined;
  const where = dest ?? named ?? path ?? 'the file';
  const wrong = WRONG_PATHS[code];
  if (wrong !== undefined) return { message: wrong(where, syscall), isWrongPath: true };
  const lacking = OF_MACHINE[code];
  return lacking === undefined ? undefined : { message: lacking(where), isWrongPath: false };
}

/** The message of {@link fileFailure}, or of any other error its own. */
export function fileFailureText(error: unknown, path?: string): string {
  return fileFailure(error, path)?.message ?? errorText(error);
}

/** Names the folder where it is the folder that is missing. */
function missing(path: string, syscall: string): string {
  const parent = dirname(resolve(path));
  if (!existsSync(parent)) return `there is no folder ${dirname(path)}`;
  return syscall === 'mkdir'
    ? `no folder can be made in ${dirname(path)}`
    : `there is no file or folder ${path}`;
}
