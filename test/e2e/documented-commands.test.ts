import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { type Site, type SiteRoute, startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// The commands of the documents, run by a shell as they stand there. Only hosts of examples are replaced.
const root = resolve(import.meta.dirname, '../..');

const hasCurl = (() => {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    process.stderr.write('SKIPPED: the commands of README.md, for there is no curl\n');
    return false;
  }
})();

/** The commands of the first shell block of a document behind a text, without comments and assignments. */
async function blockOf(document: string, behind: string): Promise<string[]> {
  const text = await readFile(join(root, document), 'utf8');
  const block = /```sh\n(.*?)```/s.exec(text.slice(text.indexOf(behind)))?.[1] ?? '';
  const lines = block.replaceAll('\\\n', '').split('\n');
  return lines.filter((line) => line !== '' && !/^(?:#|[A-Z]+=)/.test(line));
}

/** The examples of a command, which its help has as well. */
async function examplesOf(command: string): Promise<string[]> {
  const text = await readFile(join(root, 'docs/cli.md'), 'utf8');
  const section = text.slice(text.indexOf(`\n## ${command}\n`) + 1).split('\n## ', 1)[0] ?? '';
  const found = [...section.matchAll(/^ {2}\$ (.+)$/gm)].map(([, line = '']) => line);
  expect(found.length, command).toBeGreaterThan(0);
  return found;
}

/** A folder in which a shell runs commands as a user of the service. */
async function openShell(app: TestApp, replacements: Readonly<Record<string, string>>) {
  const folder = await temporaryFolder();
  const bin = join(folder.path, 'bin');
  await mkdir(bin);
  const program = `exec "${process.execPath}" "${join(root, 'bin/queued-crawler.js')}" "$@"`;
  const scripts = { 'queued-crawler': program, npx: 'exec "$@"', curl: `exec ${curl()} -fsS "$@"` };
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(bin, name), 0o755);
  }
  const env = {
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    HOME: folder.path,
    BASE: app.url,
    TOKEN: NORMAL,
    QUEUED_CRAWLER_URL: app.url,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
  };
  return {
    path: folder.path,
    /** Runs a command and returns what it printed. Throws, with what it said, when it fails. */
    async run(command: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
      const line = Object.entries(replacements).reduce(
        (text, [from, to]) => text.replaceAll(from, to),
        command,
      );
      const options = { cwd: folder.path, env: { ...env, ...more } };
      const child = execFile('sh', ['-c', line], options);
      let printed = '';
      let said = '';
      child.stdout?.on('data', (chunk: string) => (printed += chunk));
      child.stderr?.on('data', (chunk: string) => (said += chunk));
      child.stdin?.end();
      const [code] = (await once(child, 'close')) as [number | null];
      if (code !== 0) throw new Error(`${command}\nended with ${code}: ${printed}${said}`);
      return printed;
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const curl = (): string =>
  hasCurl ? execFileSync('sh', ['-c', 'command -v curl'], { encoding: 'utf8' }).trim() : 'curl';

/** A site with the pages that the examples name, and a sitemap. */
function startExampleSite(): Promise<Site> {
  const page =
    (text: string): SiteRoute =>
    (_request, response) =>
      void response.writeHead(200, { 'content-type': 'text/html' }).end(text);
  return startSite({
    routes: {
      '/': page('<title>Example</title>'),
      '/1': page('<title>One</title>'),
      '/2': page('<title>Two</title>'),
      '/new': page('<title>New</title>'),
      '/sitemap.xml': (request, response) => {
        const base = `http://${request.headers.host}`;
        const urls = [
          ['/old', '2029-12-31'],
          ['/new', '2030-02-01'],
        ].map(([path, at]) => `<url><loc>${base}${path}</loc><lastmod>${at}</lastmod></url>`);
        const text = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls.join('')}</urlset>`;
        response.writeHead(200, { 'content-type': 'application/xml' }).end(text);
      },
    },
  });
}

test.skipIf(!hasCurl)('the tour of README.md works as it is written', async () => {
  await using site = await startExampleSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  await using shell = await openShell(app, {
    'https%3A%2F%2Fexample.com%2F': encodeURIComponent(`${site.url}/`),
    'https://hooks.example.com/crawled': receiver.url,
  });
  const [create = '', push = '', read = '', find = '', hook = '', ...more] = await blockOf(
    'README.md',
    "## A minute's tour",
  );
  expect(more).toEqual([]);
  expect(JSON.parse(await shell.run(create))).toMatchObject({ crawler: { name: 'shop' } });
  const { rid: RID } = JSON.parse(await shell.run(push)) as { rid: string };
  const page = await eventually(() => shell.run(read, { RID }));
  expect(page).toBe('<title>Example</title>');
  expect(JSON.parse(await shell.run(find, { RID }))).toMatchObject({ status: 'NOT_QUEUED' });
  expect(JSON.parse(await shell.run(hook))).toMatchObject({
    crawler: { name: 'feed', webhook_secret: expect.stringMatching(/^whsec_/) },
  });
});

test('the command line of README.md works as it is written', async () => {
  await using site = await startExampleSite();
  await using app = await startApp();
  await createCrawler(app, 'shop');
  await using shell = await openShell(app, {});
  await writeFile(join(shell.path, 'urls.txt'), `${site.url}/1\n${site.url}/2\n`);
  const commands = await blockOf('README.md', 'The same from the command line');
  // It runs until it is interrupted, and has tests of its own.
  const ending = commands.filter((line) => !line.includes('queued-crawler listen'));
  expect(ending).toHaveLength(commands.length - 1);
  for (const command of ending) await shell.run(command);
  const pages = await readdir(join(shell.path, 'pages'));
  expect(pages.filter((name) => name.endsWith('.html'))).toHaveLength(2);
});

test('the examples of pushes, batches, sitemaps and exports work as they are written', async () => {
  await using site = await startExampleSite();
  await using app = await startApp();
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  await using shell = await openShell(app, { 'https://example.com': site.url });
  const lost = 'http://127.0.0.1:9999/';
  await writeFile(join(shell.path, 'urls.txt'), `${site.url}/1\n${site.url}/2\n${lost}\n`);
  const csv = `url,priority,metadata,batch\n${site.url}/1,9,"{""n"":1}",tuesday\n`;
  await writeFile(join(shell.path, 'urls.csv.gz'), gzipSync(csv));
  const env = { QUEUED_CRAWLER_TOKEN: NORMAL };
  const runAll = async (command: string): Promise<string[]> => {
    const printed: string[] = [];
    for (const line of await examplesOf(command)) printed.push(await shell.run(line, env));
    return printed;
  };
  const settled = () =>
    eventually(async () => {
      expect((await shop.details()).activity).toMatchObject({ waiting: 0, running: 0 });
    });

  const [two = ''] = await runAll('push');
  expect(two.trim().split('\n')).toHaveLength(2);
  await settled();
  const pushed = 2 + 3 + 3 + 1 + 1;
  expect((await shop.details()).activity).toMatchObject({ pushed, failed: 2 });
  expect(site.hits('/new')).toBe(1);
  expect(site.hits('/old')).toBe(0);

  expect((await runAll('batches list'))[0]).toMatch(/tuesday[^]*monday/);
  expect((await runAll('batches show'))[0]).toContain('monday completed 100 %: 3 accepted');
  for (const each of ['batches watch', 'batches close', 'batches cancel']) await runAll(each);

  await runAll('export');
  const lines = (await readFile(join(shell.path, 'shop.ndjson'), 'utf8')).trim().split('\n');
  expect(lines).toHaveLength(pushed);
  expect((await readFile(join(shell.path, 'monday.warc.gz'))).subarray(0, 2)).toEqual(
    Buffer.from([0x1f, 0x8b]),
  );

  await runAll('jobs again');
  await settled();
  expect((await shop.details()).activity.pushed).toBeGreaterThan(pushed);
  const again = await app.rest('GET', `${shop.path}/batches/monday-2`);
  expect(again.json).toMatchObject({ accepted: 1 });
});
