import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { settings } from '../../../src/config/settings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const DEPLOY = join(ROOT, 'deploy');
const read = (...path: string[]): string => readFileSync(join(DEPLOY, ...path), 'utf8');

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: { start: string };
};
const flags = scripts.start.split(' ').filter((word) => word.startsWith('--'));

const units = readdirSync(join(DEPLOY, 'systemd'));

test.each(units)('%s runs the service as npm start does', (unit) => {
  const [, command] = /^ExecStart=.*\/node (.*)$/m.exec(read('systemd', unit)) ?? [];
  expect(command?.split(' ')).toEqual([...flags, 'src/main.ts']);
});

test('a worker is one whatever the file of settings, which it shares with the others, says', () => {
  const unit = read('systemd', 'queued-crawler-worker@.service');
  const pairs = (text: string): [string, string][] =>
    [...text.matchAll(/(?<=\s|=|^)(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]);
  const own = /^Environment=(.*)$/m.exec(unit)?.[1] ?? '';
  const command = /^ExecStart=(\S*\/env )?(.*?)\S+\/node /m.exec(unit)?.[2] ?? '';
  // systemd.exec(5): what EnvironmentFile= says wins over Environment=.
  const file = 'ROLE=api HOST=0.0.0.0 PORT=8080';
  const environment = new Map([...pairs(own), ...pairs(file)]);
  const expand = (value: string): string =>
    value.replace(/\$\{(\w+)\}/g, (_all, name: string) => environment.get(name) ?? '');
  const started = new Map([
    ...environment,
    ...pairs(command).map(([name, value]) => [name, expand(value)] as const),
  ]);
  expect(Object.fromEntries(started)).toMatchObject({
    ROLE: 'worker',
    HOST: '127.0.0.1',
    PORT: '0',
  });
});

test('the image runs the service as npm start does, from files that there are', () => {
  const dockerfile = read('Dockerfile');
  const command = /^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]';
  expect(JSON.parse(command)).toEqual(['node', ...flags, 'src/main.js']);
  const ignored = read('Dockerfile.dockerignore').split('\n');
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, names = '']) =>
    names.split(' '),
  );
  expect(copied.length).toBeGreaterThan(6);
  for (const name of copied) {
    expect(existsSync(join(ROOT, name)), name).toBe(true);
    expect(ignored).toContain(`!${name}`);
  }
});

test('compose has the health check of the image, which images in the format of OCI lack', () => {
  const compose = parseAllDocuments(read('compose.yaml'))[0]?.toJS() as {
    'x-service': { healthcheck: { test: readonly string[] } };
  };
  const [kind, ...command] = compose['x-service'].healthcheck.test;
  expect(kind).toBe('CMD');
  const own = /^HEALTHCHECK .* CMD (\[.*\])$/m.exec(read('Dockerfile'))?.[1] ?? '[]';
  expect(JSON.parse(own)).toEqual(command);
});

test('containers have a temporary folder beyond their read-only file system', () => {
  const compose = parseAllDocuments(read('compose.yaml'))[0]?.toJS() as {
    'x-service': { read_only: boolean; tmpfs: readonly string[] };
  };
  expect(compose['x-service']).toMatchObject({ read_only: true, tmpfs: ['/tmp'] });
  expect(read('Dockerfile')).toContain('--read-only --tmpfs /tmp ');
});

test('what is set anywhere in deploy is a setting', () => {
  const known = new Set(Object.values(settings).map(({ variable }) => variable as string));
  const others = new Set([
    'PATH',
    'NODE_COMPILE_CACHE',
    'NODE_ENV',
    'WORKER_PORT',
    // The allocator's: see decision 011.
    'MALLOC_MMAP_THRESHOLD_',
    'MALLOC_TRIM_THRESHOLD_',
  ]);
  const lines = [...units.map((unit) => read('systemd', unit)), read('Dockerfile')].flatMap(
    (text) =>
      [...text.matchAll(/^(?:Environment=|ENV )(.*)$/gm)].flatMap(([, line = '']) =>
        line.split(' '),
      ),
  );
  const compose = parseAllDocuments(read('compose.yaml'))[0]?.toJS() as {
    'x-environment': Record<string, string>;
  };
  const names = [
    ...lines.map((pair) => pair.replace(/=.*$/, '')),
    ...Object.keys(compose['x-environment']),
  ];
  expect(names.length).toBeGreaterThan(8);
  expect(names.filter((name) => !known.has(name) && !others.has(name))).toEqual([]);
});

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

test.skipIf(!hasSystemd)('systemd accepts the units', async () => {
  await using folder = await temporaryFolder();
  const files: string[] = [];
  for (const unit of units) {
    // It looks for the program, which is elsewhere here; and a template needs an instance.
    const text = read('systemd', unit).replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`);
    const file = join(folder.path, unit.replace('@', '@1'));
    await writeFile(file, text);
    files.push(file);
  }
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...files], {
    encoding: 'utf8',
  });
  expect(stderr.split('\n').filter((line) => line.includes('queued-crawler'))).toEqual([]);
  expect(status).toBe(0);
});

const hasCompose = spawnSync('docker', ['compose', 'version']).status === 0;

test.skipIf(!hasCompose)('compose accepts its file', () => {
  const { status, stderr } = spawnSync(
    'docker',
    ['compose', '-f', join(DEPLOY, 'compose.yaml'), 'config', '--quiet'],
    {
      encoding: 'utf8',
      env: { ...process.env, NORMAL_TOKEN: 'a', JAVASCRIPT_TOKEN: 'b', ADMIN_TOKEN: 'c' },
    },
  );
  expect(status, stderr).toBe(0);
});
