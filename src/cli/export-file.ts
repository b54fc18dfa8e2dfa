import { open, readFile, rm, stat } from 'node:fs/promises';
import { usageError } from './cli-error.ts';
import { writeWhole } from './page-file.ts';

/** A file that is written in several runs, each of which continues the one before. */
export interface ExportFile extends AsyncDisposable {
  /** Where the stream continues: undefined in the first run, empty before the first result. */
  readonly token: string | undefined;
  write(bytes: Uint8Array): Promise<void>;
  /** Keeps the place: what was written up to now is in the file, and belongs to this token. */
  keep(token: string): Promise<void>;
  /** Removes a file that this run has made. */
  discard(): Promise<void>;
}

/**
 * Opens a file. Its place is kept in `<path>.place`; what an interrupted run has written behind it is
 * cut off. Throws a CliError for a file without a place, which another program has written, and for
 * one that is gone or shorter than its place says.
 */
export async function openExportFile(path: string): Promise<ExportFile> {
  const placePath = `${path}.place`;
  const place = await readPlace(placePath);
  let bytes = place?.bytes ?? 0;
  const size = await stat(path).then(
    (stats) => stats.size,
    () => 0,
  );
  if (size < bytes)
    throw usageError(`${path} has less than ${placePath} says; remove both to begin anew`);
  const handle = await open(path, place === undefined ? 'ax' : 'r+').catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw error;
    throw usageError(`${path} exists, without ${placePath}`);
  });
  if (place !== undefined) await handle.truncate(bytes);
  return {
    token: place?.token,
    async write(data) {
      await handle.write(data, 0, data.byteLength, bytes);
      bytes += data.byteLength;
    },
    async keep(token) {
      await handle.datasync();
      await writeWhole(placePath, `${JSON.stringify({ token, bytes })}\n`);
    },
    async discard() {
      if (place !== undefined) return;
      for (const made of [path, placePath]) await rm(made, { force: true });
    },
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

async function readPlace(
  path: string,
): Promise<{ readonly token: string; readonly bytes: number } | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as { token: string; bytes: number };
  } catch {
    throw usageError(`${path} cannot be read`);
  }
}
