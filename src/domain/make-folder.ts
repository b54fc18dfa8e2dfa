import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/**
 * Makes the folder and those above it, by default for this user only. An existing one stays as it is. Node's own
 * `recursive` never ends in folders such as `/proc`, which take no new ones.
 */
export async function makeFolder(path: string, mode = 0o700): Promise<void> {
  const folder = resolve(path);
  try {
    await makeOne(folder, mode);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    const parent = dirname(folder);
    if (!(await isThere(parent))) await makeFolder(parent, mode);
    // Another call may have made the parent since then.
    await makeOne(folder, mode);
  }
}

async function makeOne(folder: string, mode: number): Promise<void> {
  try {
    await mkdir(folder, { mode });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** Whether there is a file or folder. */
export function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
