import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { helmProgram } from '../helm/helm-program.ts';
import { CHART } from '../helm/render-chart.ts';

const run = promisify(execFile);

/** Makes one thing of a release in a folder of its own. Returns why it was left out, or undefined when it is there. */
type Make = (root: string, folder: string) => Promise<string | undefined>;

/** What a release consists of. The name of each is that of its folder. */
export const ARTIFACTS = {
  async package(root, folder) {
    await node(root, ['scripts/build-package.ts', join(folder, 'built')]);
    await pack(root, join(folder, 'built'), folder);
    await copyFile(join(folder, 'built', 'sbom.cdx.json'), join(folder, 'sbom.cdx.json'));
    return undefined;
  },
  async client(root, folder) {
    await node(root, ['scripts/build-client.ts']);
    await pack(root, join(root, 'dist', 'client'), folder);
    return undefined;
  },
  async chart(_root, folder) {
    const helm = helmProgram();
    if (helm === undefined) return 'there is no Helm';
    await run(helm, ['package', CHART, '--destination', folder]);
    return undefined;
  },
  async image(root, folder) {
    if (spawnSync('buildah', ['--version']).status !== 0) return 'there is no buildah';
    await node(root, ['scripts/image.ts', '--archive', folder]);
    return undefined;
  },
  async wheel(root, folder) {
    const python = join(root, 'clients', 'python');
    if (!existsSync(python)) return 'there is no Python client';
    if (spawnSync('python3', ['-m', 'pip', '--version']).status !== 0) return 'there is no pip';
    await run('python3', ['-m', 'pip', 'wheel', '--no-deps', '--wheel-dir', folder, python]);
    return undefined;
  },
} satisfies Readonly<Record<string, Make>>;

/** Writes SHA256SUMS of all files of a release, for `sha256sum --check`. */
export async function writeChecksums(folder: string): Promise<void> {
  const lines: string[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || entry.name === 'SHA256SUMS') continue;
    const sum = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    lines.push(`${sum}  ${path.slice(folder.length + 1)}`);
  }
  await writeFile(join(folder, 'SHA256SUMS'), `${lines.sort().join('\n')}\n`);
}

async function node(root: string, args: readonly string[]): Promise<void> {
  await run(process.execPath, [...args], { cwd: root, maxBuffer: 64 * 1024 ** 2 });
}

async function pack(root: string, built: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await run('npm', ['pack', built, '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
  });
}
