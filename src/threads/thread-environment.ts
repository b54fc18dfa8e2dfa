import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

/**
 * The environment of a thread: nothing of the service's own, which holds secrets, but the folder of
 * `NODE_COMPILE_CACHE` where one is set. With it a thread loads its program in half the processor
 * time.
 */
export function threadEnvironment(): Record<string, string> {
  const folder = getCompileCacheDir();
  // Node adds a folder for its own version to the one that it was given.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}
