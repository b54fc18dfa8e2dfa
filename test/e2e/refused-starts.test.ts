import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, open, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Has a program believe that it runs on an older Node. */
const OLD_NODE =
  'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.1.0"}})';
const ADVICE =
  /^queued-crawler needs Node 24 and this is Node 20\.1\.0: run `npm rebuild node`.*\n$/;

const root = process.getuid?.() === 0;
/** Root may write anywhere. */
const AS_NOBODY = root
  ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--']
  : [];
const canBeNobody = !root || spawnSync('setpriv', [...AS_NOBODY.slice(1), 'true']).status === 0;

test.each(['start', 'migrate', 'backup', 'restore'])(
  'on a Node that is too old, npm run %s says in a sentence what to do',
  async (name) => {
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Readonly<Record<string, string>>;
    };
    const args = /\bnode (.*)/.exec(scripts[name] ?? '')?.[1]?.split(' ') ?? [];
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--import', OLD_NODE, ...args, '--help'],
      { cwd: ROOT, timeout: 120_000, encoding: 'utf8' },
    );
    expect(stderr).toMatch(ADVICE);
    expect(status).toBe(1);
  },
);

test('on a Node that is too old, the command line without a Node of its own says what to do', async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, 'bin'));
  await writeFile(join(folder.path, 'package.json'), '{"type": "module"}');
  for (const name of ['queued-crawler.js', 'check-node.js']) {
    await copyFile(join(ROOT, 'bin', name), join(folder.path, 'bin', name));
  }
  const program = join(folder.path, 'bin', 'queued-crawler.js');
  const { status, stderr } = spawnSync(process.execPath, ['--import', OLD_NODE, program], {
    timeout: 120_000,
    encoding: 'utf8',
  });
  expect(stderr).toMatch(ADVICE);
  expect(status).toBe(1);
});

test.runIf(canBeNobody)(
  'a DATA_DIR that cannot be written is named with its whole path',
  async () => {
    await using folder = await temporaryFolder();
    await chmod(folder.path, 0o555);
    const relative = join('..', '..', '..', folder.path, 'data');
    await expect(startProcess({ DATA_DIR: relative }, AS_NOBODY)).rejects.toThrow(
      `cannot start: DATA_DIR is ${join(folder.path, 'data')}, which cannot be used (EACCES`,
    );
    await chmod(folder.path, 0o700);
  },
);

test.runIf(existsSync('/proc'))('a DATA_DIR that cannot be made is named', async () => {
  await expect(startProcess({ DATA_DIR: '/proc/new/data' })).rejects.toThrow(
    'cannot start: DATA_DIR is /proc/new/data, which cannot be used (ENOENT',
  );
});

test('a DATA_DIR is made with the folders above it', async () => {
  await using folder = await temporaryFolder();
  const data = join(folder.path, 'a', 'b', 'c');
  await using service = await startProcess({ DATA_DIR: data });
  expect((await service.rest('GET', '/readyz')).status).toBe(200);
  expect((await stat(data)).mode & 0o777).toBe(0o700);
});

test('a database that is damaged is named, with what helps', async () => {
  await using folder = await temporaryFolder();
  const env = { DATA_DIR: folder.path };
  const file = join(folder.path, 'queued-crawler.db');
  {
    await using service = await startProcess(env);
    await service.terminate();
  }
  await using database = await open(file, 'r+');
  const { size } = await database.stat();
  // Its header, in the first page, is whole.
  await database.write(Buffer.alloc(size - 4_096, 0xa5), 0, size - 4_096, 4_096);
  await expect(startProcess(env)).rejects.toThrow(
    `malformed: ${file}: it is damaged, restore a backup by \`queued-crawler restore FILE --replace\``,
  );
  await writeFile(file, Buffer.alloc(20_000, 0xa5));
  await expect(startProcess(env)).rejects.toThrow(
    new RegExp(`cannot start: .*: ${file}: .*move it away.*queued-crawler restore FILE`),
  );
});

test('a port that is taken is told with the setting that chooses another', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const env = { DATA_DIR: folder.path, PORT: String(site.port) };
  await expect(startProcess(env)).rejects.toThrow(/EADDRINUSE.*stop it, or choose another PORT/);
});

const FILE = join(ROOT, 'package.json');

test.each([
  [{ TLS_CERT: '/nope.pem', TLS_KEY: '/nope.key' }, 'TLS_CERT: cannot be read (ENOENT'],
  [{ TLS_CERT: FILE, TLS_KEY: '/nope.key' }, 'TLS_KEY: cannot be read (ENOENT'],
  [{ TLS_CERT: FILE, TLS_KEY: FILE }, 'TLS_CERT and TLS_KEY: cannot be used together ('],
  [{ HOST: 'nohost.invalid' }, 'HOST: has no address (getaddrinfo'],
  // Nothing listens there.
  [{ MONGODB_URI: 'mongodb://127.0.0.1:1/a' }, 'MONGODB_URI: The database cannot be reached'],
  [
    { MONGODB_URI: 'mongodb://127.0.0.1:1/a?tls=true&tlsCAFile=/nope.pem' },
    'MONGODB_URI: ENOENT: no such file or directory, open',
  ],
  [{ BACKUP_DIR: join(FILE, 'a'), BACKUP_EVERY_HOURS: '1' }, 'BACKUP_DIR: cannot be written ('],
])('a start that %j prevents names the setting', async (env, text) => {
  await using folder = await temporaryFolder();
  const started = startProcess({ DATA_DIR: folder.path, ...env });
  await expect(started).rejects.toThrow(`queued-crawler cannot start: ${text}`);
});

test.runIf(canBeNobody)('a BACKUP_DIR that this user may not write is named', async () => {
  await using data = await temporaryFolder();
  await using backups = await temporaryFolder();
  await chmod(data.path, 0o777);
  await chmod(backups.path, 0o555);
  const env = { DATA_DIR: data.path, BACKUP_DIR: backups.path, BACKUP_EVERY_HOURS: '24' };
  await expect(startProcess(env, AS_NOBODY)).rejects.toThrow(
    'cannot start: BACKUP_DIR: cannot be written (EACCES',
  );
  await chmod(backups.path, 0o700);
});

test('a CHROMIUM_PATH that cannot be run is named in the log of the start', async () => {
  await using folder = await temporaryFolder();
  await using service = await startProcess({ DATA_DIR: folder.path, CHROMIUM_PATH: '/nope' });
  expect(service.output).toContain('CHROMIUM_PATH cannot be run (ENOENT');
});
