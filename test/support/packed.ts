import { execFile } from 'node:child_process';
import { lstat, mkdir, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Builds the package of the service and packs it into `folder`, as `npm publish` would. Returns the path of the tarball and what is in it. */
export async function packService(
  folder: string,
): Promise<{ readonly tarball: string; readonly files: readonly string[] }> {
  const built = join(folder, 'built');
  await run(process.execPath, ['scripts/build-package.ts', built], { cwd: root });
  const { stdout } = await run(
    'npm',
    ['pack', built, '--json', '--ignore-scripts', '--pack-destination', folder],
    { cwd: root },
  );
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { filename: string; files: { path: string }[] },
  ];
  return { tarball: join(folder, packed.filename), files: packed.files.map(({ path }) => path) };
}

/** Unpacks a tarball of npm into `folder`, as an installation does when nothing else is needed. */
export async function unpack(tarball: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', folder, '--strip-components', '1']);
}

/** The room that a folder takes on the disk, in bytes. */
export async function diskBytes(folder: string): Promise<number> {
  let sum = 0;
  for (const name of await readdir(folder, { recursive: true })) {
    sum += (await lstat(join(folder, name))).blocks * 512;
  }
  return sum;
}
