import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createBackups } from '../../src/backup/backups.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { ADMIN, NORMAL, startApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { createRecordingLogger } from '../support/loggers.ts';
import { startProxy } from '../support/proxy.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PROJECT = join(import.meta.dirname, '..', '..');

/** Runs the command as an operator does. */
async function command(...args: readonly string[]) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, ['src/backup/main.ts', ...args], {
    cwd: PROJECT,
    env: { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  const [code] = (await once(child, 'close')) as [number];
  return { code, text };
}

/** Pushes until it is stopped; the `rid`s that were acknowledged, in order. */
function pushAlways(service: ServiceProcess, site: string) {
  const rids: string[] = [];
  let stopped = false;
  async function loop(): Promise<void> {
    for (let batch = 0; !stopped; batch += 1) {
      const items = Array.from({ length: 20 }, (_, n) => ({ url: `${site}/page/${batch}-${n}` }));
      const { json } = await service.rest('POST', `/crawler/${NORMAL}/store/push_batch`, { items });
      for (const { rid } of json.results) rids.push(rid);
    }
  }
  const done = loop();
  return {
    rids,
    async stop() {
      stopped = true;
      await done;
    },
  };
}

test('a backup made under load is the service as it was then: after a crash it is restored into an empty folder', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const file = join(folder.path, 'backup.db');
  await using service = await startProcess({ DATA_DIR: join(folder.path, 'data') });
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
  const pushing = pushAlways(service, site.url);
  await eventually(() => expect(pushing.rids.length).toBeGreaterThan(300));
  const before = [...pushing.rids];
  const url = ['--url', service.url, '--admin-token', ADMIN];
  const made = await command('backup', file, ...url);
  expect(made).toMatchObject({ code: 0, text: expect.stringContaining('1 crawlers') });
  const after = pushing.rids.length;
  // Pushes continued during the backup.
  expect(after).toBeGreaterThan(before.length);
  await pushing.stop();
  await service.kill9();

  const restored = join(folder.path, 'restored');
  expect(await command('restore', file, '--data-dir', restored)).toMatchObject({ code: 0 });
  expect((await stat(join(restored, 'queued-crawler.db'))).mode & 0o777).toBe(0o600);
  await using again = await startProcess({ DATA_DIR: restored });
  const rids = await eventually(async () => {
    const { json } = await again.rest('GET', `/crawler/${NORMAL}/stats`);
    expect(json.queue).toMatchObject({ waiting: 0, retrying: 0 });
    expect(json.concurrency.running).toBe(0);
    const stored = await again.rest('GET', `/storage/rids?token=${NORMAL}&limit=10000`);
    expect(json.completed).toBe(stored.json.length);
    expect(json.history.at(-1)).toMatchObject({ pushed: json.completed });
    return new Set<string>(stored.json);
  });
  expect(before.filter((rid) => !rids.has(rid))).toEqual([]);
  const all = new Set(pushing.rids);
  expect([...rids].filter((rid) => !all.has(rid))).toEqual([]);
});

test('a backup has the pools of proxies of accounts, and a restored service uses them with their passwords', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using proxy = await startProxy({ from: '127.0.0.11' });
  const data = join(folder.path, 'data');
  const file = join(folder.path, 'backup.db');
  {
    await using app = await startApp({ dataDir: data });
    const made = await app.rest('POST', `/proxies/${NORMAL}`, {
      name: 'mine',
      proxies: [proxy.url],
    });
    expect(made.status, made.text).toBe(200);
    const url = ['--url', app.url, '--admin-token', ADMIN];
    expect(await command('backup', file, ...url)).toMatchObject({ code: 0 });
    expect((await app.rest('DELETE', `/proxies/${NORMAL}/mine`)).status).toBe(200);
  }
  // The backup does not show the passwords.
  expect((await readFile(file)).includes('user:password@')).toBe(false);
  const restored = join(folder.path, 'restored');
  expect(await command('restore', file, '--data-dir', restored)).toMatchObject({ code: 0 });
  await using again = await startApp({ dataDir: restored });
  const query = { token: NORMAL, url: `${site.url}/page/1`, proxy: 'mine', format: 'json' };
  const { json, text } = await again.rest('GET', `/?${new URLSearchParams(query)}`);
  expect(json, text).toMatchObject({ pc_status: 200 });
  expect(site.seen.at(-1)?.from).toBe('127.0.0.11');
});

test('a restore refuses what is damaged, in use or not empty; --replace keeps what was there', async () => {
  await using folder = await temporaryFolder();
  const data = join(folder.path, 'data');
  const file = join(folder.path, 'backup.db');
  const damaged = join(folder.path, 'damaged.db');
  const at = ['--data-dir', data];
  await mkdir(data);
  {
    await using app = await startApp({ dataDir: data });
    await app.rest('POST', `/crawler/${NORMAL}`, { name: 'kept' });
    expect(await command('backup', file, ...at)).toMatchObject({
      code: 1,
      text: expect.stringContaining('A process uses this DATA_DIR'),
    });
    const wrong = ['--url', app.url, '--admin-token', 'not-the-admin-token'];
    expect(await command('backup', file, ...wrong)).toMatchObject({ code: 1 });
    expect((await command('backup', file, '--url', app.url, '--admin-token', ADMIN)).code).toBe(0);
    expect(await command('restore', file, ...at, '--replace')).toMatchObject({
      code: 1,
      text: expect.stringContaining('A process uses this DATA_DIR'),
    });
  }
  await writeFile(damaged, 'SQLite format 3\0 and nothing else');
  for (const [bad, text] of [
    [damaged, 'is not a whole database'],
    [join(folder.path, 'none.db'), 'there is no file or folder'],
  ] as const) {
    expect(await command('restore', bad, ...at, '--replace')).toMatchObject({
      code: 1,
      text: expect.stringContaining(text),
    });
  }
  expect(await command('restore', file, ...at)).toMatchObject({
    code: 1,
    text: expect.stringContaining('There is a database in'),
  });
  // A stopped service is backed up from its folder; what is pushed afterwards is not in it.
  const later = join(folder.path, 'later.db');
  expect(await command('backup', later, ...at)).toMatchObject({ code: 0 });
  await appendFile(later, 'more');
  expect(await command('restore', later, ...at, '--replace')).toMatchObject({
    code: 0,
    text: expect.stringContaining('What was there is in'),
  });
  expect((await readdir(data)).filter((name) => name.includes('before'))).toHaveLength(1);
  await using app = await startApp({ dataDir: data });
  expect((await app.rest('GET', `/crawler/${NORMAL}`)).text).toContain('kept');
});

test('backups are made by themselves, one at a time, and the oldest are removed', async () => {
  await using folder = await temporaryFolder();
  const logger = createRecordingLogger();
  const embedded = await openSqliteStore({ dataDir: folder.path, logger });
  await using _store = { [Symbol.asyncDispose]: () => embedded.store.close() };
  const backups = createBackups({
    copy: embedded.backup,
    database: embedded.path,
    folder: join(folder.path, 'backups'),
    keep: 2,
    everyMs: 50,
    minFreeBytes: 0,
    logger,
  });
  const [first, second] = [backups.make(), backups.make()];
  await expect(second).rejects.toMatchObject({ reason: 'backup_running' });
  const { name } = await first;
  backups.start();
  await eventually(async () => {
    const names = (await backups.list()).map((each) => each.name);
    expect(names).toHaveLength(2);
    expect(names).not.toContain(name);
  });
  await backups.close(10_000);
  expect((await readdir(join(folder.path, 'backups'))).every((each) => each.endsWith('.db'))).toBe(
    true,
  );
  await expect(backups.get('../queued-crawler.db')).rejects.toMatchObject({ kind: 'not_found' });
});

test('a backup by the command stays in BACKUP_DIR and counts toward BACKUP_KEEP', async () => {
  await using folder = await temporaryFolder();
  const target = join(folder.path, 'backups');
  await using app = await startApp({ env: { BACKUP_DIR: target, BACKUP_KEEP: '2' } });
  const at = ['--url', app.url, '--admin-token', ADMIN];
  const lists: string[][] = [];
  for (const file of ['first.db', 'second.db', 'third.db']) {
    expect(await command('backup', join(folder.path, file), ...at)).toMatchObject({ code: 0 });
    lists.push((await readdir(target)).toSorted());
  }
  expect(lists.map(({ length }) => length)).toEqual([1, 2, 2]);
  expect(lists[2]).not.toContain(lists[0]?.[0]);
  // What was fetched is kept.
  expect(await readdir(folder.path)).toContain('first.db');
});

test('a backup that is made after the clock was set back is not removed as the oldest', async () => {
  await using folder = await temporaryFolder();
  const logger = createRecordingLogger();
  const embedded = await openSqliteStore({ dataDir: folder.path, logger });
  await using _store = { [Symbol.asyncDispose]: () => embedded.store.close() };
  const target = join(folder.path, 'backups');
  await mkdir(target);
  const later = ['queued-crawler-29990101T000000000Z.db', 'queued-crawler-29990102T000000000Z.db'];
  for (const name of later) await writeFile(join(target, name), '');
  const { backup: copy, path: database } = embedded;
  const backups = createBackups({
    copy,
    database,
    folder: target,
    keep: 2,
    everyMs: 0,
    minFreeBytes: 0,
    logger,
  });
  const { name } = await backups.make();
  expect((await readdir(target)).toSorted()).toEqual([name, later[1]]);
});
