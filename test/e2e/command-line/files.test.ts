import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import {
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { ADMIN, NORMAL } from '../../support/app.ts';
import { runCommandLine, startCommandLine } from '../../support/command-line.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { shareApp } from '../../support/shared-app.ts';
import { startSite } from '../../support/site.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const shared = shareApp();

/** Codes of the system, and the calls that Node names with them. */
const RAW =
  /\b(E[A-Z]{4,}|open|stat|lstat|mkdir|rename|read) '|\bE(NOENT|NOTDIR|ISDIR|EXIST|ACCES)\b/;

function environment(): Record<string, string> {
  return {
    HOME: '/nonexistent',
    QUEUED_CRAWLER_URL: shared().url,
    QUEUED_CRAWLER_TOKEN: NORMAL,
    QUEUED_CRAWLER_ADMIN_TOKEN: ADMIN,
  };
}

describe('a file or folder that cannot be used is told as a sentence, with the exit code of a wrong value', () => {
  beforeAll(async () => {
    await shared().rest('POST', `/crawler/${NORMAL}`, { name: 'shop' });
  });

  test.each([
    ['push shop --file NONE', /there is no file or folder NONE$/],
    ['push shop --file FOLDER', /FOLDER is a folder, not a file$/],
    ['push shop --file FILE/x', /FILE\/x cannot be there/],
    ['backup NONE/b.db', /there is no .*folder NONE$/],
    ['backup NONE/x/b.db', /there is no folder NONE$/],
    ['backup FOLDER', /FOLDER is not a file/],
    ['backup FILE/b.db', /FILE is a file, not a folder/],
    ['backup /dev/null', /\/dev\/null is not a file/],
    ['backup NEW.db --data-dir NONE', /there is no folder NONE/],
    ['restore NONE --data-dir NEW', /there is no file or folder NONE/],
    ['restore FOLDER --data-dir NEW', /FOLDER is not a file/],
    ['export shop --to NONE/x.ndjson', /there is no folder NONE$/],
    ['export shop --to FILE/x.ndjson', /FILE\/x.ndjson cannot be there/],
    ['results --crawler shop --to FILE', /FILE is a file, not a folder$/],
    ['results --crawler shop --to FILE/x', /FILE\/x cannot be there/],
    [
      'results --crawler shop --to /proc/new/x',
      /there is no folder|no folder can be made in \/proc$/,
    ],
    ['proxies create p --file NONE', /there is no file or folder NONE$/],
    ['proxies create p --file FOLDER', /FOLDER is a folder, not a file$/],
    ['stats --ca NONE', /certificate authority cannot be read: there is no file or folder NONE$/],
    ['stats --ca FOLDER', /certificate authority cannot be read: FOLDER is a folder, not a file$/],
    ['serve --env-file NONE', /--env-file cannot be read: there is no file or folder NONE$/],
    ['crawl http://127.0.0.1:1/ --output NONE/x', /there is no folder NONE$/],
    ['crawl http://127.0.0.1:1/ --output FOLDER', /FOLDER is a folder, not a file$/],
  ])('%s', async (line, expected) => {
    if (line.includes('/proc/') && !existsSync('/proc')) return;
    await using folder = await temporaryFolder();
    const paths = {
      NONE: join(folder.path, 'none'),
      NEW: join(folder.path, 'new'),
      FILE: join(folder.path, 'file'),
      FOLDER: join(folder.path, 'folder'),
    };
    await writeFile(paths.FILE, 'x');
    await mkdir(paths.FOLDER);
    const fill = (text: string): string =>
      text.replace(/\b(NONE|NEW|FILE|FOLDER)\b/g, (name) => paths[name as keyof typeof paths]);
    const { code, stderr } = await runCommandLine(line.split(' ').map(fill), {
      env: environment(),
    });
    const told = stderr.trim().replace(/ \(unusable_path\)$/, '');
    expect(told).toMatch(new RegExp(fill(expected.source)));
    expect(told).not.toMatch(RAW);
    expect(code).toBe(2);
  });
});

test('a page that cannot be written is not crawled', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const crawl = (file: string) =>
    runCommandLine(['crawl', `${site.url}/page/1`, '-o', file], { env: environment() });
  for (const file of [join(folder.path, 'none/x'), folder.path]) {
    const refused = await crawl(file);
    expect([refused.code, site.hits()], refused.stderr).toEqual([2, 0]);
  }
  const file = join(folder.path, 'page.html');
  for (const before of [undefined, 'another page, which is longer'.repeat(1_000)]) {
    if (before !== undefined) await writeFile(file, before);
    expect((await crawl(file)).code).toBe(0);
    expect(await readFile(file, 'utf8')).toMatch(/^<!doctype html>[^]*Page 1[^]*<\/html>\s*$/i);
  }
});

test('an export that fails before its first result leaves no file, so that it can be repeated', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'shop.csv');
  const wrong = { ...environment(), QUEUED_CRAWLER_TOKEN: 'a-wrong-token-of-nobody' };
  await shared().rest('POST', `/crawler/${NORMAL}`, { name: 'shop' });
  const refused = await runCommandLine(['export', 'shop', '--to', file], { env: wrong });
  expect(refused.code).toBe(3);
  expect(existsSync(file)).toBe(false);
  const exported = await runCommandLine(['export', 'shop', '--to', file], { env: environment() });
  expect([exported.code, exported.stderr]).toEqual([0, '0 results\n']);
  expect(existsSync(file)).toBe(true);
});

test('an export without results is continued by the next one, also after a kill', async () => {
  await using folder = await temporaryFolder();
  const [ended, killed] = ['ended.csv', 'killed.csv'].map((name) => join(folder.path, name));
  const shop = await createCrawler(shared(), 'shop');
  const run = (...args: string[]) =>
    runCommandLine(['export', 'shop', ...args], { env: environment() });
  const empty = await run('--to', ended ?? '', '--remove');
  expect([empty.code, empty.stderr]).toEqual([0, '0 results\n']);
  const follow = ['export', 'shop', '--to', killed ?? '', '--follow'];
  await using waiting = startCommandLine(follow, { env: environment() });
  await eventually(() => expect(existsSync(`${killed}.place`)).toBe(true));
  waiting.kill('SIGKILL');
  await waiting.ended;
  const rid = await shop.push('http://127.0.0.1:1/');
  await shop.stored(rid);
  for (const file of [ended, killed]) {
    const last = await run('--to', file ?? '');
    expect([last.code, last.stderr]).toEqual([0, '1 results\n']);
    const [heading, row, ...more] = (await readFile(file ?? '', 'utf8')).split('\r\n');
    expect([heading?.slice(0, 4), row?.slice(0, 25), more]).toEqual(['rid,', `${rid},`, ['']]);
  }
});

test('a service that cannot be reached is told with its address, wherever that is set', async () => {
  const env = { ...environment(), QUEUED_CRAWLER_URL: 'http://127.0.0.1:1' };
  const { code, stderr } = await runCommandLine(['stats'], { env });
  expect([code, stderr]).toEqual([
    6,
    expect.stringMatching(
      /^queued-crawler: the service at http:\/\/127.0.0.1:1 cannot be reached: /,
    ),
  ]);
});

test.each([
  ['push', 'shop', 'http://a.example/'],
  ['export', 'shop', '--to', '/dev/null', '--format', 'csv'],
  ['results', '--crawler', 'shop'],
  ['results', '0123456789abcdef01234567'],
])('a long command says once which service it waits for: %s', async (...args) => {
  const url = 'http://127.0.0.1:1';
  await using folder = await temporaryFolder();
  const place = args.map((arg) => (arg === '/dev/null' ? join(folder.path, 'x.csv') : arg));
  const env = { ...environment(), QUEUED_CRAWLER_URL: url };
  await using program = startCommandLine(place, { env });
  const told = `waiting: the service at ${url} cannot be reached: connect ECONNREFUSED 127.0.0.1:1\n`;
  await eventually(() => expect(program.stderr).toBe(told));
  program.kill('SIGINT');
  expect((await program.ended).code).toBe(130);
  // A push says how it continues, too.
  expect(program.stderr.replace(/^0 URLs done, .*\n/m, '')).toBe(told);
});

/** Resolves, too, when the work fails with that code. */
async function ignoring(code: string, work: Promise<void>): Promise<void> {
  await work.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== code) throw error;
  });
}

test.each(['standard input', 'a named pipe'])(
  'a push that waits for %s ends when it is interrupted, and closes no batch',
  async (kind) => {
    const app = shared();
    await using folder = await temporaryFolder();
    await app.rest('POST', `/crawler/${NORMAL}`, { name: 'shop' });
    const more = Promise.withResolvers<void>();
    async function* input() {
      // Full calls are sent at once.
      for (let n = 0; n < 600; n += 1) yield `http://127.0.0.1:1/${n}\n`;
      await more.promise;
    }
    const pipe = join(folder.path, 'pipe');
    const isPipe = kind === 'a named pipe';
    if (isPipe) await promisify(execFile)('mkfifo', [pipe]);
    const args = ['push', 'shop', '--batch', 'list', '--close-batch', '--quiet'];
    await using program = startCommandLine([...args, '--file', isPipe ? pipe : '-'], {
      env: environment(),
      ...(isPipe ? {} : { input: input() }),
    });
    // The program may end before it has read all of it.
    const written = isPipe ? ignoring('EPIPE', writeFile(pipe, input())) : undefined;
    try {
      await eventually(async () => {
        const { json } = await app.rest('GET', `/crawler/${NORMAL}/shop/batches`);
        expect(json.batches).toMatchObject([{ name: 'list' }]);
      });
      program.kill('SIGINT');
      const { code } = await program.ended;
      // A shell has 130 for either. A program that waits for a pipe is ended by the signal itself.
      expect(isPipe ? ['SIGINT', 130] : [130]).toContain(code ?? program.process.signalCode);
      const { json } = await app.rest('GET', `/crawler/${NORMAL}/shop/batches`);
      expect(json.batches).toMatchObject([{ state: 'open' }]);
    } finally {
      more.resolve();
      await written;
    }
  },
);

const OTHER_PROGRAMS: readonly [what: string, make: () => Server, args: string[], told: RegExp][] =
  [
    ['a site', site, ['--http1', 'stats'], /unsupported content type text\/html/],
    ['a site', site, ['stats'], /no HTTP\/2.*--http1/],
    ['a site', site, ['health'], /this program\n$/],
    ['an endless site', endless, ['health'], /this program\n$/],
    ['HTTP/2 alone', () => createHttp2Server(notFound), ['stats'], /HTTP 404/],
    ['HTTP/2 alone', () => createHttp2Server(notFound), ['--http1', 'stats'], /no HTTP\/1/],
    ['no HTTP', () => createTcpServer(greet), ['stats'], /no HTTP\/2/],
    ['no HTTP', () => createTcpServer(greet), ['--http1', 'stats'], /no HTTP\/1/],
  ];

function notFound(_request: Http2ServerRequest, response: Http2ServerResponse): void {
  response.writeHead(404, { 'content-type': 'text/html' }).end('nothing');
}

function site(): Server {
  return createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<html>another</html>');
  });
}

function endless(): Server {
  return createServer((_request, response) => {
    const writeMore = (): void => {
      if (!response.destroyed) response.write('<br>'.repeat(10_000), () => setImmediate(writeMore));
    };
    writeMore();
  });
}

function greet(socket: Socket): void {
  socket.on('error', () => undefined).end('220 mail.example\r\n');
}

test.each(OTHER_PROGRAMS)(
  'another program at the address, which is %s, is told',
  async (_what, make, args, told) => {
    await using server = await listen(make());
    const url = `http://127.0.0.1:${server.port}`;
    // In a process of its own, which an error without a listener would end.
    await using program = startCommandLine(args, {
      env: { ...environment(), QUEUED_CRAWLER_URL: url },
    });
    const { code, stdout, stderr } = await program.ended;
    expect(stderr).toContain(`what answers at ${url} is not a service of this program`);
    expect(stderr).toMatch(told);
    expect([code, stdout, stderr.split('\n').length]).toEqual([6, '', 2]);
  },
);

test('migrate from a folder without a database says so, and ends as for a wrong value', async () => {
  await using folder = await temporaryFolder();
  for (const [from, text] of [
    [join(folder.path, 'none'), `there is no folder ${join(folder.path, 'none')}\n`],
    [folder.path, `there is no file or folder ${join(folder.path, 'queued-crawler.db')}\n`],
  ] as const) {
    const args = ['migrate', '--from', from, '--to', 'mongodb://127.0.0.1:1/x'];
    await using program = startCommandLine(args, { env: { HOME: '/nonexistent' } });
    const { code, stderr } = await program.ended;
    expect([stderr, code]).toEqual([text, 2]);
  }
});
