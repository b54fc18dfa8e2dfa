import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { OLDEST_NODE } from '../../scripts/package/manifest.ts';
import { JAVASCRIPT, NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { isLong } from '../support/length.ts';
import { diskBytes, packService, unpack } from '../support/packed.ts';
import { type ServiceProcess, startCommand } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);

/** The megabytes that an installation may take without a browser. */
const MAX_BYTES = 60e6;

/** Crawls a page through the queue, and reads its result. */
async function crawls(service: ServiceProcess): Promise<void> {
  await using site = await startSite();
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'shop' });
  const url = encodeURIComponent(`${site.url}/page/1`);
  const pushed = await service.rest(
    'GET',
    `/?token=${NORMAL}&crawler=shop&callback=true&url=${url}`,
  );
  await eventually(async () => {
    const stored = await service.rest('GET', `/storage?token=${NORMAL}&rid=${pushed.json.rid}`);
    expect(stored.status).toBe(200);
    expect(stored.headers.get('original_status')).toBe('200');
  });
}

test('the packed package runs in an empty folder, without a shell and without other packages', async () => {
  await using folder = await temporaryFolder();
  const { tarball, files } = await packService(folder.path);
  const own = join(folder.path, 'node_modules', 'queued-crawler');
  await unpack(tarball, own);
  expect(await diskBytes(own)).toBeLessThan(MAX_BYTES);

  const manifest = JSON.parse(await readFile(join(own, 'package.json'), 'utf8'));
  expect(manifest.dependencies).toBeUndefined();
  expect(manifest.private).toBeUndefined();
  for (const name of Object.values<string>(manifest.bin)) expect(files).toContain(name);
  expect(files).toEqual(
    expect.arrayContaining(['LICENSE', 'README.md', 'THIRD-PARTY-LICENSES.md', 'docs/settings.md']),
  );
  // Node runs no TypeScript in node_modules.
  expect(files.filter((path) => /\.tsx?$/.test(path))).toEqual([]);
  const readme = await readFile(join(own, 'README.md'), 'utf8');
  const links = [...readme.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, path = '']) => path);
  expect(links.length).toBeGreaterThan(5);
  expect(links.filter((path) => !existsSync(join(own, path)))).toEqual([]);

  const sbom = JSON.parse(await readFile(join(own, 'sbom.cdx.json'), 'utf8'));
  expect(sbom.metadata.component).toMatchObject({ name: manifest.name, version: manifest.version });
  const names = sbom.components.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(['undici', 'mongodb', 'preact']));

  const program = join(own, 'bin', 'queued-crawler.js');
  // No program is found by its name: neither a shell nor another Node.
  const env = { PATH: join(folder.path, 'nowhere'), LOG_LEVEL: 'info' };
  await using service = await startCommand(
    [process.execPath, program, 'serve'],
    { ...env, DATA_DIR: join(folder.path, 'data') },
    folder.path,
  );
  await crawls(service);
  const page = await service.rest('GET', '/console');
  const script = /src="(\/console\/assets\/[^"]+)"/.exec(page.text)?.[1] ?? '';
  expect((await service.rest('GET', script)).status).toBe(200);
  expect((await service.rest('GET', '/openapi.json')).json.info.version).toBe(manifest.version);
  expect((await service.rest('GET', '/docs')).status).toBe(200);
  const { stdout } = await run(process.execPath, [program, 'health', '--ready'], {
    env: { ...env, PORT: String(service.port) },
  });
  expect(stdout).toContain('ready');

  // Which Chromium a machine has is no matter of this test.
  if (!existsSync('/usr/bin/chromium')) {
    await service.rest('GET', `/?token=${JAVASCRIPT}&url=${encodeURIComponent(service.url)}`);
    await eventually(() => expect(service.output).toContain('There is no Chromium'));
    expect(service.output).toContain('npm install --global @sparticuz/chromium');
  }
  expect(await service.terminate()).toBe(0);
});

/** What the npm package of a version of Node contains on this machine. */
const node = `node-${process.platform}-${process.arch}`;

/** Installs that version of Node in a folder of its own; returns the folder of its program. */
async function installNode(version: string, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  await run('npm', ['install', '--prefix', folder, '--no-save', `${node}@${version}`]);
  const bin = join(folder, 'bin');
  await mkdir(bin);
  await symlink(join(folder, 'node_modules', node, 'bin', 'node'), join(bin, 'node'));
  return bin;
}

test.runIf(isLong && process.platform !== 'win32').each([OLDEST_NODE, '22', '24'])(
  'npm installs the package with Node %s, globally and for npx in an empty folder',
  async (version) => {
    await using folder = await temporaryFolder();
    const { tarball } = await packService(folder.path);
    const bin = await installNode(version, join(folder.path, 'node'));
    const env = {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
      npm_config_loglevel: 'error',
    };
    const prefix = join(folder.path, 'global');
    const { stderr } = await run('npm', ['install', '--global', '--prefix', prefix, tarball], {
      env,
    });
    expect(stderr).toBe('');
    expect(await diskBytes(prefix)).toBeLessThan(MAX_BYTES);
    const installed = await startCommand(
      [join(prefix, 'bin', 'queued-crawler'), 'serve'],
      { PATH: env.PATH, DATA_DIR: join(folder.path, 'global-data') },
      folder.path,
    );
    await using service = installed;
    await crawls(service);
    // Node 22 warns of SQLite unless it is told not to.
    expect(service.errors).toBe('');
    expect(await service.terminate()).toBe(0);

    const empty = join(folder.path, 'empty');
    await mkdir(empty);
    await run('npm', ['install', tarball], { cwd: empty, env });
    await using npx = await startCommand(
      ['npx', '--no', 'queued-crawler', 'serve'],
      { PATH: env.PATH, HOME: folder.path },
      empty,
    );
    await crawls(npx);
    // npx ends by the signal itself. Its output is closed when the service has ended.
    await npx.terminate();
  },
);
