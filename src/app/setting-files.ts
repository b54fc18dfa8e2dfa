import { accessSync, constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { ConfigError } from '../config/config.ts';
import { errorText } from '../domain/error-text.ts';
import { makeFolder } from '../domain/make-folder.ts';

/** What the files of `TLS_CERT` and `TLS_KEY` hold, in PEM. */
export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** The certificate chain and the private key. Throws {@link ConfigError} when they cannot be used. */
export async function readTlsFiles(certFile: string, keyFile: string): Promise<TlsFiles> {
  const cert = await readSettingFile('TLS_CERT', certFile);
  const key = await readSettingFile('TLS_KEY', keyFile);
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    throw unusable('TLS_CERT and TLS_KEY', 'cannot be used together', cause);
  }
  return { cert, key };
}

async function readSettingFile(variable: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    throw unusable(variable, 'cannot be read', cause);
  }
}

/**
 * Makes the folder of backups that the service makes by itself. Throws {@link ConfigError} when
 * this user may not write there. A full disk keeps no service from starting.
 */
export async function prepareBackupFolder(folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOSPC') return;
    throw unusable('BACKUP_DIR', 'cannot be written', cause);
  }
}

/** The warning for a `CHROMIUM_PATH` that cannot be run; undefined if it can, and without one. */
export function chromiumPathWarning(chromiumPath: string): string | undefined {
  if (chromiumPath === '') return undefined;
  try {
    accessSync(chromiumPath, constants.X_OK);
    return undefined;
  } catch (error) {
    return `CHROMIUM_PATH cannot be run (${errorText(error)}): crawls of the JavaScript token wait until it can`;
  }
}

/** The error of a setting whose value cannot be used, with the message of its cause. */
export function unusable(variable: string, problem: string, cause: unknown): ConfigError {
  return new ConfigError(`${variable}: ${problem} (${errorText(cause)})`, { cause });
}
