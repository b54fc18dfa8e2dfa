import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
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

test('the packed client compiles and runs in a project of its own, as the documents show it', async () => {
  await using folder = await temporaryFolder();
  await run(process.execPath, ['scripts/build-client.ts'], { cwd: root });
  const { stdout: packed } = await run(
    'npm',
    ['pack', './dist/client', '--json', '--pack-destination', folder.path],
    { cwd: root },
  );
  const [{ filename }] = JSON.parse(packed.slice(packed.indexOf('[')));
  const modules = join(folder.path, 'node_modules');
  const own = join(modules, 'queued-crawler-client');
  await mkdir(own, { recursive: true });
  await run('tar', ['-xzf', join(folder.path, filename), '-C', own, '--strip-components', '1']);
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
  // Without the library of browsers. The declarations of Connect name one of its types.
  const options = '--module nodenext --target es2024 --lib es2024,esnext.disposable --strict';
  const programs = ['program.ts', 'types.ts', 'common.cts'];
  await run(compiler, [...options.split(' '), '--types', 'node', '--skipLibCheck', ...programs], {
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
