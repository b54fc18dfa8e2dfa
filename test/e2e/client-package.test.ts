import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { isLong } from '../support/length.ts';
import { packService, unpack } from '../support/packed.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** The program in docs/clients.md. */
async function documentedProgram(): Promise<string> {
  const text = await readFile(join(root, 'docs/clients.md'), 'utf8');
  const [, program] = /```ts\n(.*?)```/s.exec(text) ?? [];
  if (program === undefined) throw new Error('docs/clients.md has no program');
  return program;
}

/** Builds the package of the client and packs it into `folder`; returns the path of the tarball. */
async function packClient(folder: string): Promise<string> {
  await run(process.execPath, ['scripts/build-client.ts'], { cwd: root });
  const { stdout } = await run(
    'npm',
    ['pack', './dist/client', '--json', '--pack-destination', folder],
    { cwd: root },
  );
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('[')));
  return join(folder, filename);
}

test('the packed client compiles and runs in a project of its own, as the documents show it', async () => {
  await using folder = await temporaryFolder();
  const tarball = await packClient(folder.path);
  const modules = join(folder.path, 'node_modules');
  const own = join(modules, 'queued-crawler-client');
  await unpack(tarball, own);
  for (const name of ['@bufbuild', '@connectrpc', '@types', 'undici-types']) {
    await symlink(join(root, 'node_modules', name), join(modules, name));
  }
  await writeFile(join(folder.path, 'package.json'), '{"type":"module"}');
  await writeFile(join(folder.path, 'program.ts'), await documentedProgram());
  const compiler = join(root, 'node_modules/.bin/tsc');
  // Would be no error where the types were not found.
  await writeFile(
    join(folder.path, 'types.ts'),
    `import { createCrawlerClient } from 'queued-crawler-client';
import { PushService } from 'queued-crawler-client/gen/queuedcrawler/v1/push_service_pb';
const client = createCrawlerClient({ baseUrl: '', token: '' });
// @ts-expect-error
export const number: number = client.crawlers.getCrawler({ name: 'a' });
// @ts-expect-error
export const text: string = PushService;
// @ts-expect-error
export const loop: string = client.push('a', []);
`,
  );
  // CommonJS, which is typed as well.
  await writeFile(
    join(folder.path, 'common.cts'),
    `import client = require('queued-crawler-client');
const made = client.createCrawlerClient({ baseUrl: process.env['BASE'] ?? '', token: process.env['TOKEN'] ?? '' });
made.stats.getStats({}).then(({ completed }) => {
  console.log(typeof completed);
  made.close();
});
`,
  );
  // Without the library of browsers, and with every declaration checked.
  const options = '--module nodenext --target es2024 --lib es2024,esnext.disposable --strict';
  const programs = ['program.ts', 'types.ts', 'common.cts'];
  await run(compiler, [...options.split(' '), '--types', 'node', ...programs], {
    cwd: folder.path,
  });
  const manifest = JSON.parse(await readFile(join(own, 'package.json'), 'utf8'));
  expect(Object.values(manifest.dependencies)).toEqual(
    Object.keys(manifest.dependencies).map(() => expect.stringMatching(/^\^\d/)),
  );
  await using site = await startSite();
  await using app = await startApp();
  const { stdout } = await run(process.execPath, ['program.js', `${site.url}/page/1`], {
    cwd: folder.path,
    env: { ...process.env, BASE: app.url, TOKEN: NORMAL },
  });
  const common = await run(process.execPath, ['common.cjs'], {
    cwd: folder.path,
    env: { ...process.env, BASE: app.url, TOKEN: NORMAL },
  });
  expect(common.stdout).toBe('bigint\n');
  expect(stdout).toMatch(/^200 http:\/\/127\.0\.0\.1:\d+\/page\/1 113 bytes\n$/);
});

test.runIf(isLong)(
  'npm installs the client next to the service and a newer program with one protobuf for all',
  async () => {
    await using folder = await temporaryFolder();
    const client = await packClient(folder.path);
    const { tarball: service } = await packService(folder.path);
    const empty = join(folder.path, 'empty');
    await mkdir(empty);
    // What a program that uses generated code brings itself.
    await run(
      'npm',
      ['install', client, service, '@bufbuild/protobuf@2', '@connectrpc/connect@2'],
      {
        cwd: empty,
      },
    );
    const installed = await readdir(empty, { recursive: true });
    for (const name of ['@bufbuild/protobuf', '@connectrpc/connect']) {
      expect(installed.filter((path) => path.endsWith(`node_modules/${name}`))).toEqual([
        `node_modules/${name}`,
      ]);
    }
    const { stdout } = await run(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `import { create, toJsonString } from '@bufbuild/protobuf';
import { GetCrawlerRequestSchema as schema } from 'queued-crawler-client/gen/queuedcrawler/v1/crawler_service_pb';
console.log(toJsonString(schema, create(schema, { name: 'shop' })));`,
      ],
      { cwd: empty },
    );
    expect(stdout).toBe('{"name":"shop"}\n');
  },
);
