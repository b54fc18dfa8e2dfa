import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommandLine, startCommandLine } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { startCommand } from '../../support/service-process.ts';
import { startSite } from '../../support/site.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { NORMAL } from '../../support/tokens.ts';

test('serve refuses a port and a file of settings that it cannot use, before it starts', async () => {
  await using folder = await temporaryFolder();
  const env = { HOME: folder.path };
  const port = /--port must be a whole number from 0 to 65535, not "(abc|65536|-1)"/;
  const cases: readonly [args: string[], text: RegExp][] = [
    [['--port', 'abc'], port],
    [['--port', '65536'], port],
    [['--port', '-1'], port],
    [['--env-file', '/nofile'], /--env-file cannot be read: there is no file or folder \/nofile/],
    [['--env-file', folder.path], /--env-file cannot be read: .* is a folder, not a file/],
  ];
  for (const [args, text] of cases) {
    const { code, stdout, stderr } = await runCommandLine(['serve', ...args], { env });
    expect([args, code, stdout]).toEqual([args, 2, '']);
    expect(stderr).toMatch(text);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  }
});

test('lines of a file of settings that mean nothing are told', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'service.env');
  const lines = ['# a comment', 'PORT 1', 'SMTP_FROM="a', 'b"', 'PROT=8080', ''];
  await writeFile(file, lines.join('\n'));
  const command = [process.execPath, 'bin/queued-crawler.js', 'serve', '--env-file', file];
  const env = { HOME: folder.path, DATA_DIR: join(folder.path, 'data') };
  await using service = await startCommand(command, env);
  expect(service.errors.match(/line \d+ .*/g)).toEqual([
    `line 2 of ${file} is ignored: it is not NAME=value`,
  ]);
  expect(service.output).toContain('PROT is not a setting: did you mean PORT?');
  expect(await service.terminate()).toBe(0);
});

test('without its file of settings, serve ends as docs/cli.md says', async () => {
  await using program = startCommandLine(['serve', '--env-file', '/nofile'], { env: {} });
  expect(await program.ended).toMatchObject({
    code: 9,
    stderr: expect.stringContaining('/nofile: not found'),
  });
});

/** The service as `serve` runs it, in a process of its own, while it crawls a page that never ends. */
async function serveBusy(folder: string, siteUrl: string) {
  const env = { HOME: folder, DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'info' };
  const command = [process.execPath, 'bin/queued-crawler.js', 'serve'];
  const service = await startCommand(command, { ...env, SHUTDOWN_SECONDS: '60' });
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'kept' });
  const url = encodeURIComponent(`${siteUrl}/hang`);
  await service.rest('GET', `/?token=${NORMAL}&crawler=kept&url=${url}`);
  return service;
}

test('serve passes on each signal under its name, so that the second ends the service at once', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using service = await serveBusy(folder.path, site.url);
  await eventually(() => expect(site.hits('/hang')).toBe(1));
  service.process.kill('SIGHUP');
  await eventually(() => expect(service.output).toContain('"reason":"SIGHUP","msg":"stopping"'));
  await eventually(() => {
    service.process.kill('SIGINT');
    expect(service.output).toContain('"reason":"SIGINT","msg":"stopping at once"');
  });
  // Both have ended: the pipe of their output is closed.
  expect(await service.ended).toBe(1);
});

test('the service stops when serve was killed', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using service = await serveBusy(folder.path, site.url);
  service.process.kill('SIGKILL');
  await eventually(() => {
    expect(service.output).toContain('"reason":"the parent process has ended","msg":"stopping"');
  });
  const pid = Number(/"pid":(\d+)/.exec(service.output)?.[1]);
  process.kill(pid, 'SIGKILL');
  await service.ended;
});
