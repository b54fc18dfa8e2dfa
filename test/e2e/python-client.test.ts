import { execFile, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/listen.ts';
import { type Site, startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// The wheel of the Python client, built and installed with Debian's Python where there is one.

const root = resolve(import.meta.dirname, '../..');
const source = join(root, 'clients/python');
const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';
const run = promisify(execFile);

/** Whether a command of Python runs here. What is missing is named on standard error. */
function has(what: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(python, args, { stdio: 'ignore' });
    return true;
  } catch {
    process.stderr.write(
      `SKIPPED: ${what}, for "${python} ${args.join(' ')}" does not work here\n`,
    );
    return false;
  }
}

const hasBuild = has('the Python client', '-c', 'import ssl, setuptools, wheel, pip');
const hasMypy = has('the types of the Python client', '-m', 'mypy', '--version');

describe.runIf(hasBuild)('the Python client', () => {
  let folder: AsyncDisposable & { readonly path: string };
  let installed: string;
  let app: TestApp;
  let site: Site;

  beforeAll(async () => {
    folder = await temporaryFolder();
    installed = join(folder.path, 'installed');
    // pip writes into the folder that it builds.
    const copy = join(folder.path, 'source');
    cpSync(source, copy, { recursive: true });
    const offline = ['--no-index', '--no-deps', '--disable-pip-version-check', '--quiet'];
    const wheels = join(folder.path, 'wheels');
    const build = ['-m', 'pip', 'wheel', ...offline, '--no-build-isolation'];
    await run(python, [...build, '--wheel-dir', wheels, copy]);
    const [wheel = ''] = readdirSync(wheels);
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(wheel).toBe(`queued_crawler-${version}-py3-none-any.whl`);
    const target = ['--target', installed, join(wheels, wheel)];
    await run(python, ['-m', 'pip', 'install', ...offline, ...target]);
    site = await startSite();
    app = await startApp({ env: { PUSH_RATE_PER_SECOND: '40' } });
  });

  afterAll(async () => {
    await app[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  const env = () => ({
    PATH: process.env.PATH,
    PYTHONPATH: installed,
    PYTHONDONTWRITEBYTECODE: '1',
    BASE: app.url,
    TOKEN: NORMAL,
    SITE: site.url,
  });

  test('pushes, waits, reads and continues, for threads and for asyncio', async () => {
    const { stdout } = await run(python, [join(source, 'tests/story.py')], { env: env() });
    expect(stdout).toBe('story: ok\n');
  });

  test('reads requests of webhooks', async () => {
    const { stdout } = await run(python, [join(source, 'tests/webhook.py')], { env: env() });
    expect(stdout).toBe('webhook: ok\n');
  });

  test('waits, repeats and fails as documented when the service or something between is at fault', async () => {
    const { stdout } = await run(python, [join(source, 'tests/faults.py')], { env: env() });
    expect(stdout).toBe('faults: ok\n');
  });

  test('its examples crawl', async () => {
    for (const example of ['crawl.py', 'crawl_async.py']) {
      const args = [join(source, 'examples', example), `${site.url}/page/1`];
      const { stdout } = await run(python, args, { env: env() });
      expect(stdout).toMatch(/^200 http\S+\/page\/1 \d+ characters\n$/);
    }
  });

  test('its receiver takes results that come together, and events', async () => {
    const port = await freePort();
    const crawler = await createCrawler(app, 'python-together', {
      callback_url: `http://127.0.0.1:${port}/`,
      deliver_batch: { max_results: 10, max_ms: 300 },
    });
    const { json } = await app.rest('POST', `${crawler.path}/rotate_webhook_secret`);
    const receiver = spawn(python, [join(source, 'examples/webhook_receiver.py')], {
      env: { ...env(), PORT: String(port), WEBHOOK_SECRET: json.webhook_secret },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      let printed = '';
      receiver.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
      await eventually(async () => {
        expect((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST' })).status).toBe(401);
      });
      const items = [1, 2, 3, 4, 5].map((n) => ({ url: `${site.url}/page/${n}`, batch: 'monday' }));
      const pushed = await app.rest('POST', `${crawler.path}/push_batch`, { items });
      await app.rest('POST', `${crawler.path}/batches/monday/close`);
      for (const { rid } of pushed.json.results) {
        await eventually(() => expect(printed).toMatch(new RegExp(`^${rid} 200 \\d+ http`, 'm')));
      }
      await eventually(() => expect(printed).toMatch(/^batch\.completed \{.*"accepted":5/m));
      expect(printed.trimEnd().split('\n')).toHaveLength(6);
    } finally {
      receiver.kill();
    }
  });

  test('its receiver takes genuine deliveries only', async () => {
    const port = await freePort();
    const crawler = await createCrawler(app, 'python-webhook', {
      callback_url: `http://127.0.0.1:${port}/`,
    });
    const { json } = await app.rest(
      'POST',
      `/crawler/${NORMAL}/python-webhook/rotate_webhook_secret`,
    );
    const receiver = spawn(python, [join(source, 'examples/webhook_receiver.py')], {
      env: { ...env(), PORT: String(port), WEBHOOK_SECRET: json.webhook_secret },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      let printed = '';
      receiver.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
      const forged = () =>
        fetch(`http://127.0.0.1:${port}/`, {
          method: 'POST',
          headers: { rid: 'forged', 'webhook-timestamp': String(Math.floor(Date.now() / 1_000)) },
          body: 'forged',
        });
      expect((await eventually(forged)).status).toBe(401);
      const tried = await app.rest('POST', `${crawler.path}/test_delivery`);
      expect(tried.json).toMatchObject({ acknowledged: true });
      const rid = await crawler.push(`${site.url}/page/2`);
      await eventually(() => expect(printed).toMatch(new RegExp(`^${rid} 200 \\d+ http`)));
      expect(printed).not.toContain('forged');
    } finally {
      receiver.kill();
    }
  });

  test.runIf(hasMypy)('its types hold, also in programs that use it', async () => {
    const programs = ['examples', 'tests'].flatMap((folder) =>
      readdirSync(join(source, folder)).map((name) => join(source, folder, name)),
    );
    const cache = ['--cache-dir', join(folder.path, 'mypy')];
    const strict = ['-m', 'mypy', '--strict', ...cache];
    const typed = { env: { ...env(), MYPYPATH: join(source, 'src') } };
    await run(python, [...strict, join(source, 'src/queued_crawler')], typed);
    for (const program of programs) {
      await run(python, [...strict, program], typed);
    }
    expect(existsSync(join(installed, 'queued_crawler/py.typed'))).toBe(true);
  });
});
