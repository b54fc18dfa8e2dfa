import { execFileSync, spawnSync } from 'node:child_process';
import { copyFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

/** The libraries that programs need and that Debian's minimal base has. */
const BASE =
  /^(ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\+\+)\.so(\.\d+)?$/;

/** What makes mounts that only its children see: with a user namespace unless it runs as root. */
const UNSHARE = [
  'unshare',
  '--mount',
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
];

/** Whether {@link bareLibraries} works on this machine. */
export const canHideLibraries =
  process.platform === 'linux' &&
  process.arch === 'x64' &&
  spawnSync('unshare', [...UNSHARE.slice(1), 'mount', '--bind', '/tmp', '/mnt']).status === 0;

/** A program that runs its arguments where the folder of libraries has only the base's. */
export interface BareLibraries extends AsyncDisposable {
  readonly launcher: readonly string[];
}

/** Copies the libraries of the base that `programs` need; the launcher mounts them over the rest. */
export async function bareLibraries(...programs: readonly string[]): Promise<BareLibraries> {
  const folder = await temporaryFolder();
  const needed = new Set(programs.flatMap(librariesOf).filter((path) => BASE.test(basename(path))));
  const libc = [...needed].find((path) => basename(path).startsWith('libc.')) ?? '';
  for (const path of needed) await copyFile(path, join(folder.path, basename(path)));
  const script = 'mount --bind "$0" "$1" && shift && exec "$@"';
  const launcher = [...UNSHARE, 'sh', '-c', script, folder.path, await realpath(dirname(libc))];
  return { launcher, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

function librariesOf(program: string): string[] {
  const lines = execFileSync('ldd', [program]).toString().split('\n');
  return lines.flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}
