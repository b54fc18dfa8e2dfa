import { execFile } from 'node:child_process';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = resolve(import.meta.dirname, '../../..');
const buf = join(root, 'node_modules/.bin/buf');
const run = promisify(execFile);

interface DescribedFile {
  readonly name: string;
  readonly package: string;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Compiles a folder that has nothing but its files. */
async function filesOf(folder: string): Promise<DescribedFile[]> {
  const { stdout } = await run(buf, ['build', '.', '--output', '-#format=json'], {
    cwd: folder,
    maxBuffer: 64 * 1024 * 1024,
  });
  return (JSON.parse(stdout) as { file: DescribedFile[] }).file;
}

test('the proto folder compiles as it lies, with what it takes from others as they publish it', async () => {
  await using folder = await temporaryFolder();
  await cp(join(root, 'proto'), folder.path, { recursive: true });
  const names = (await filesOf(folder.path)).map(({ name }) => name);
  const taken = ['google/api/annotations.proto', 'google/api/http.proto'];
  expect(names).toEqual(
    expect.arrayContaining([...taken, 'queuedcrawler/v1/crawler_service.proto']),
  );
  for (const name of taken) {
    const [own, published] = await Promise.all(
      ['proto', 'node_modules/google-gax/build/protos'].map((place) =>
        readFile(join(root, place, name), 'utf8'),
      ),
    );
    expect(own, name).toBe(published);
  }
});

test('the exported proto files compile by themselves and name their packages in other languages', async () => {
  await using folder = await temporaryFolder();
  await run(process.execPath, ['scripts/export-protos.ts', folder.path], {
    cwd: root,
    env: { ...process.env, INIT_CWD: root },
  });
  const files = await filesOf(folder.path);
  expect(files.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['google/api/annotations.proto', 'google/rpc/error_details.proto']),
  );
  const own = files.filter((file) => file.package === 'queuedcrawler.v1');
  expect(own.length).toBeGreaterThan(7);
  for (const file of own) {
    expect(file.options, file.name).toMatchObject({
      goPackage: 'queuedcrawler/v1;queuedcrawlerv1',
      javaPackage: 'queuedcrawler.v1',
      javaMultipleFiles: true,
      csharpNamespace: 'QueuedCrawler.V1',
      phpNamespace: 'QueuedCrawler\\V1',
      rubyPackage: 'QueuedCrawler::V1',
    });
  }
});

test('a field that changes its number is refused against the last release', async () => {
  await using folder = await temporaryFolder();
  await cp(join(root, 'proto'), join(folder.path, 'proto'), { recursive: true });
  await cp(join(root, 'buf.yaml'), join(folder.path, 'buf.yaml'));
  await symlink(join(root, 'node_modules'), join(folder.path, 'node_modules'));
  const breaking = (): Promise<unknown> =>
    run(buf, ['breaking', 'proto', '--against', 'proto/released.binpb'], { cwd: folder.path });
  await breaking();
  const file = join(folder.path, 'proto/queuedcrawler/v1/push_service.proto');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('string crawler = 2;', 'string crawler = 99;'));
  await expect(breaking()).rejects.toMatchObject({
    stdout: expect.stringContaining('field "2" with name "crawler" on message "PushRequest"'),
  });
});
