import { chmod, chown, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../../support/app.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// What another user of the machine can read. SQLite keeps stored pages, cookies and signing secrets in plain text.

async function modesIn(folder: string): Promise<Record<string, string>> {
  const names = await readdir(folder);
  const modes = await Promise.all(
    names.map(async (name) => [name, modeOf((await stat(join(folder, name))).mode)] as const),
  );
  return Object.fromEntries(modes);
}

function modeOf(mode: number): string {
  return (mode & 0o777).toString(8);
}

// The database of these tests is the embedded one, whichever the other files run on.
const env = { MONGODB_URI: '' };

test('a new data folder and all its files are for the service alone, whatever the umask', async () => {
  await using base = await temporaryFolder();
  const dataDir = join(base.path, 'made', 'data');
  await using app = await startApp({ dataDir, env });
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'a', callback_url: 'http://127.0.0.1/' });
  expect(modeOf((await stat(dataDir)).mode)).toBe('700');
  const modes = await modesIn(dataDir);
  expect(Object.keys(modes)).toContain('queued-crawler.db');
  expect(new Set(Object.values(modes))).toEqual(new Set(['600']));
});

test('files that an earlier version left open are closed', async () => {
  await using base = await temporaryFolder();
  const dataDir = join(base.path, 'data');
  await using first = await startApp({ dataDir, env });
  await first.stop();
  const path = join(dataDir, 'queued-crawler.db');
  await chmod(path, 0o644);
  await chmod(dataDir, 0o755);
  await using app = await startApp({ dataDir, env });
  const { status } = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'a' });
  expect(status).toBe(200);
  expect(new Set(Object.values(await modesIn(dataDir)))).toEqual(new Set(['600']));
  // The folder may be shared on purpose; what lies in it is closed.
  expect(modeOf((await stat(dataDir)).mode)).toBe('755');
});

/** Whether the start warns of a data folder of this mode, which has another owner if one is given. */
async function warned(mode: number, owner?: number): Promise<boolean> {
  await using base = await temporaryFolder();
  const dataDir = join(base.path, 'data');
  await mkdir(dataDir);
  await writeFile(join(dataDir, 'other'), '');
  if (owner !== undefined) await chown(dataDir, owner, process.getgid?.() ?? 0);
  await chmod(dataDir, mode);
  await using app = await startApp({ dataDir, env });
  return app.log.some((line) => line.includes('other users may write to DATA_DIR'));
}

test('a folder in which others may write is warned of, a sticky one is not', async () => {
  expect(await warned(0o777)).toBe(true);
  expect(await warned(0o775)).toBe(true);
  expect(await warned(0o1777)).toBe(false);
  expect(await warned(0o755)).toBe(false);
});

test.runIf(process.getuid?.() === 0)(
  'a folder of another owner is open to the group of the service, as fsGroup of Kubernetes makes it',
  async () => {
    expect(await warned(0o2775, 10_001)).toBe(false);
    expect(await warned(0o2777, 10_001)).toBe(true);
  },
);

test('the secret of a deleted crawler is not left in the file', async () => {
  await using base = await temporaryFolder();
  const dataDir = join(base.path, 'data');
  await using app = await startApp({ dataDir, env });
  const secrets: string[] = [];
  for (const name of ['kept', 'gone', 'last']) {
    const settings = { name, callback_url: 'http://127.0.0.1:8081/' };
    const { json } = await app.rest('POST', `/crawler/${NORMAL}`, settings);
    secrets.push(json.crawler.webhook_secret as string);
  }
  await app.rest('POST', `/crawler/${NORMAL}/gone/delete`);
  await app.stop();
  const file = await readFile(join(dataDir, 'queued-crawler.db'), 'latin1');
  expect(secrets.map((secret) => file.includes(secret))).toEqual([true, false, true]);
});
