import { execFile, execFileSync } from 'node:child_process';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ADMIN, JAVASCRIPT, NORMAL, startApp, type TestApp } from '../../support/app.ts';
import { runCommandLine, startCommandLine } from '../../support/command-line.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { startReceiver } from '../../support/receiver.ts';
import { shareApp } from '../../support/shared-app.ts';
import { startSite } from '../../support/site.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const UNKNOWN = '0123456789abcdef01234567';

function envOf(app: TestApp, home = '/nonexistent'): Record<string, string> {
  return { HOME: home, QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
}

const shared = shareApp();

test('a crawler is made, shown, changed, paused and removed, in the words of the REST API', async () => {
  const app = shared();
  const env = envOf(app);
  const run = (...args: string[]) => runCommandLine(['--json', ...args], { env });

  const made = await run('crawler', 'create', 'shop', '--concurrency', '7', '--robots-txt');
  expect([made.code, made.stderr]).toEqual([0, '']);
  expect(made.json).toEqual([
    {
      name: 'shop',
      delivery: 'storage',
      token_type: 'normal',
      concurrency: 7,
      processes: [],
      status: 'running',
      max_proxy_megabytes_a_day: 0,
      max_retries: 110,
      retry_window_hours: 48,
      politeness: { max_per_host: 0, delay_ms: 0, robots_txt: true, hosts: [], group: '' },
      group_by_domain: false,
      notify_after_minutes: 0,
      notify_batches: false,
      attention: [],
      etag: expect.any(String),
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
      activity: expect.objectContaining({ waiting: 0, pushed: 0 }),
      created: true,
    },
  ]);
  const rest = (await app.rest('GET', `/crawler/${NORMAL}/shop`)).json;
  expect((await run('crawler', 'show', 'shop')).json).toEqual([
    { ...rest, created_at: expect.any(String), updated_at: expect.any(String) },
  ]);
  expect((await run('crawler', 'update', 'shop', '--concurrency', '9')).json[0].concurrency).toBe(
    9,
  );
  expect((await run('crawler', 'pause', 'shop')).json[0]).toMatchObject({
    status: 'paused',
    paused_by: 'user',
  });
  expect((await run('crawler', 'list')).json.map(({ name }) => name)).toEqual(['shop']);
  expect((await run('crawler', 'unpause', 'shop')).json[0].status).toBe('running');
  expect((await run('crawler', 'purge', 'shop')).code).toBe(2);
  expect((await run('crawler', 'purge', 'shop', '--yes')).json).toEqual([
    { crawler: 'shop', purged: 0 },
  ]);
  expect((await run('crawler', 'delete', 'shop', '--yes')).code).toBe(0);
  expect((await run('crawler', 'list')).stdout).toBe('');
});

test('how it ends says what was wrong, and so does its text', async () => {
  await using app = await startApp();
  const env = envOf(app);
  await createCrawler(app, 'shop');
  await createCrawler(app, 'idle');
  const url = 'http://a.example/';
  const withTls = app.url.replace('http:', 'https:');
  const cases: readonly [args: string[], code: number, text: RegExp][] = [
    [['stats'], 0, /^$/],
    [['jobs', 'list', 'idle'], 0, /no jobs are waiting; --state shows those that are retrying or/],
    [['crawl', 'http://127.0.0.1:1/'], 1, /cb_status 523 port_not_allowed/],
    [['bogus'], 2, /unknown command 'bogus'/],
    [['push', 'shop', url, '--batch-size', '0'], 2, /--batch-size must be a whole number from 1/],
    [['push', 'shop', url, '--param', 'speed=9'], 2, /there is no crawl parameter "speed"/],
    [['push', 'shop', url, '--param', 'device=toaster'], 2, /desktop, tablet, mobile/],
    [['crawler', 'update', 'shop', '--concurrency', '999999'], 2, /concurrency/],
    [['--token', 'nobody-has-this', 'stats'], 3, /access token is not valid/],
    [['account', 'list'], 3, /there is no admin token/],
    [['crawler', 'show', 'nope'], 4, /There is no crawler "nope"\. \(crawler_not_found\)/],
    [['push', 'nope', url], 4, /There is no crawler "nope"/],
    [['crawler', 'create', 'shop', '--concurrency', '3'], 5, /crawler_exists/],
    [['--url', 'http://127.0.0.1:1', 'stats'], 6, /127\.0\.0\.1:1 cannot be reached/],
    [['--url', withTls, 'stats'], 6, /cannot be reached: it answers without TLS; try http:\/\//],
    [['--http1', '--url', withTls, 'stats'], 6, /it answers without TLS; try http:\/\//],
    [['push', 'shop', 'nonsense', url], 7, /line 1: nonsense: .*\(invalid_url\)/],
    [['results', UNKNOWN], 4, /^0123456789abcdef01234567: neither queued nor stored/],
  ];
  await Promise.all(
    cases.map(async ([args, code, text]) => {
      const end = await runCommandLine(args, { env });
      expect([args, end.code], end.stderr).toEqual([args, code]);
      expect(end.stderr).toMatch(text);
      expect(end.stderr).not.toContain(NORMAL);
    }),
  );
  await using failing = startCommandLine(['--json', 'crawler', 'show', 'nope'], { env });
  const failed = await failing.ended;
  expect(failed.code).toBe(4);
  expect(JSON.parse(failed.stderr)).toEqual({
    error: { message: 'There is no crawler "nope".', reason: 'crawler_not_found', field: 'name' },
  });
  await using watching = startCommandLine(['stats', '--watch', '1'], { env });
  await eventually(() => expect(watching.stdout).toContain('shop'));
  watching.kill('SIGINT');
  expect((await watching.ended).code).toBe(130);
});

test('results tells which rids have none and never will, and ends when the others are there', async () => {
  await using site = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  const stored = await shop.push(`${site.url}/page/1`);
  const deleted = await shop.push(`${site.url}/page/2?delay=60000`);
  await shop.post(`delete_job?rid=${deleted}`);
  const env = envOf(app);
  const end = await runCommandLine(['--json', 'results', deleted, UNKNOWN, stored], { env });
  expect(end.json.map(({ rid }) => rid)).toEqual([stored]);
  expect(end.stderr).toContain(`${deleted}: neither queued nor stored`);
  expect(end.stderr).toContain(`${UNKNOWN}: neither queued nor stored`);
  expect([end.code, end.stderr]).toEqual([7, expect.stringContaining('1 results; 2 are missing')]);
  // A queued one is waited for.
  await shop.post('pause');
  const queued = await shop.push(`${site.url}/page/3`);
  const waited = await runCommandLine(['results', queued, '--patience', '1'], { env });
  expect([waited.code, waited.stderr]).toEqual([7, expect.stringContaining('no result came')]);
});

test('a page is crawled to the terminal or a file; statistics and jobs are told', async () => {
  await using site = await startSite();
  const app = shared();
  await using folder = await temporaryFolder();
  const env = envOf(app);
  const run = (...args: string[]) => runCommandLine(args, { env });
  const page = await run('crawl', `${site.url}/page/1`);
  expect(page.stdout).toContain('<title>Page 1</title>');
  expect(page.stderr).toContain('cb_status 200, original_status 200');
  const file = join(folder.path, 'page.md');
  const [facts] = (
    await run('--json', 'crawl', `${site.url}/page/2`, '--param', 'format=md', '-o', file)
  ).json;
  expect(facts).toMatchObject({ cb_status: 200, pushed_url: `${site.url}/page/2` });
  expect(facts).not.toHaveProperty('body');
  expect(await readFile(file, 'utf8')).toContain('# Page 2');

  const crawler = await createCrawler(app, 'shop');
  const rid = await crawler.push(`${site.url}/page/3`);
  await crawler.stored(rid);
  const [found] = (await run('--json', 'find', rid)).json;
  expect(found).toMatchObject({ rid, crawler: 'shop', result: { rid, cb_status: 200 } });
  expect((await run('find', rid)).stdout).toContain('result    cb_status: 200');
  const [stats] = (await run('--json', 'stats')).json;
  expect(stats).toMatchObject({
    completed: 1,
    queue: { waiting: 0 },
    crawlers: [{ name: 'shop' }],
  });
  expect((await run('stats')).stdout).toMatch(/shop +running +0 +0 +0\/20 +1 +0 +0 +█/);
});

test('queued jobs, failures and deliveries are listed, tested and made again', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  const env = envOf(app);
  const run = (...args: string[]) => runCommandLine(args, { env });
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
  const rids: string[] = [];
  for (let n = 0; n < 3; n++) rids.push(await shop.push(`${site.url}/page/${n}`));
  const listed = await run('--json', 'jobs', 'list', 'shop', '--limit', '2');
  expect(listed.json.map(({ rid, state, url }) => [rid, state, url])).toEqual(
    [0, 1].map((n) => [rids[n], 'waiting', `${site.url}/page/${n}`]),
  );
  const table = await run('jobs', 'list', 'shop', '--limit', '2');
  expect(table.stdout).toMatch(new RegExp(`^RID.*\\n${rids[0]} +waiting`));
  expect(table.stderr).toContain('the first 2; --limit shows more');
  expect((await run('jobs', 'delete', 'shop', rids[0] ?? '')).code).toBe(0);
  expect((await run('jobs', 'delete', 'shop', rids[0] ?? '')).code).toBe(4);

  receiver.answer({ status: 200 });
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url, max_retries: 0 });
  const ok = await hook.push(`${site.url}/page/1`);
  const bad = await hook.push(`${site.url}/status/500`);
  const delivered = ['--json', 'deliveries', 'list', 'hook', '--state', 'delivered'];
  await eventually(async () => {
    const { json } = await run(...delivered);
    expect(new Set(json.map(({ rid }) => rid))).toEqual(new Set([ok, bad]));
  });
  const shown = await run('deliveries', 'show', 'hook', ok);
  expect(shown.stdout).toMatch(/^delivered.*\nATTEMPT.*\n1 +\S+ +200/);
  const [replayed] = (await run('--json', 'deliveries', 'replay', 'hook', ok)).json;
  expect(replayed).toEqual({ replayed: 1 });
  const [tested] = (await run('--json', 'deliveries', 'test', 'hook')).json;
  expect(tested).toMatchObject({ acknowledged: true, attempt: { status: 200 } });
  const [failure] = (await run('--json', 'jobs', 'failures', 'hook')).json;
  expect(failure).toMatchObject({ count: 1, original_status: 500, examples: [{ rid: bad }] });
  await receiver[Symbol.asyncDispose]();
  expect((await run('deliveries', 'test', 'hook')).code).toBe(1);
});

test('a profile is for its user alone; flags win over the environment, that over the profile', async () => {
  const app = shared();
  await using folder = await temporaryFolder();
  const home = folder.path;
  const file = join(home, '.config/queued-crawler/profiles.json');
  const run = (args: string[], env: Record<string, string> = {}) =>
    runCommandLine(args, { env: { HOME: home, ...env } });
  const init = ['init', '--url', app.url, '--javascript-token', JAVASCRIPT, '--token'];
  expect((await run([...init, 'wrong-token-wrong'])).code).toBe(3);
  expect((await run([...init, NORMAL])).code).toBe(0);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await run([...init, NORMAL])).stderr).toContain('--force replaces it');
  expect(
    (
      await run([
        'init',
        '--profile',
        'far',
        '--url',
        'http://127.0.0.1:1',
        '--token',
        'x'.repeat(20),
        '--no-check',
      ])
    ).code,
  ).toBe(0);
  expect((await stat(file)).mode & 0o777).toBe(0o600);

  const nowhere = { QUEUED_CRAWLER_URL: 'http://127.0.0.1:1' };
  const ends = await Promise.all([
    run(['stats']),
    run(['--profile', 'far', 'stats']),
    run(['stats'], { QUEUED_CRAWLER_PROFILE: 'far' }),
    run(['stats'], nowhere),
    run(['--url', app.url, 'stats'], nowhere),
    run(['--profile', 'none', 'stats']),
  ]);
  expect(ends.map(({ code }) => code)).toEqual([0, 6, 6, 6, 0, 2]);
  expect(ends.at(-1)?.stderr).toContain('there is no profile "none"');
  const javascript = ['--javascript', '--json', 'crawler', 'create', 'js'];
  expect((await run(javascript)).json[0].token_type).toBe('javascript');
  const findings = (await run(['--json', 'doctor'])).json.map(({ check, state }) => [check, state]);
  expect(findings).toEqual([
    ['profile', 'ok'],
    ['token', 'ok'],
    ['crawlers', 'ok'],
    ['queue', 'ok'],
    ['JavaScript token', 'ok'],
    ['admin token', 'missing'],
  ]);
  expect((await run(['doctor'], { QUEUED_CRAWLER_TOKEN: 'nobody-has-this' })).code).toBe(1);

  await chmod(file, 0o644);
  expect((await run(['stats'])).stderr).toContain('can be read by others: chmod 600');
  await chmod(file, 0o600);
  await writeFile(file, '{"default": {"token": 5}}');
  expect((await run(['stats'])).stderr).toContain('default.token must be a string');
});

test('the operator manages accounts', async () => {
  const app = shared();
  const env = { ...envOf(app), QUEUED_CRAWLER_ADMIN_TOKEN: ADMIN };
  const doctor = runCommandLine(['--json', 'doctor'], { env });
  const run = (...args: string[]) => runCommandLine(['--json', 'account', ...args], { env });
  const [made] = (await run('create', 'shop', '--email', 'a@example.com')).json;
  expect(made).toEqual({
    name: 'shop',
    normal_token: expect.stringMatching(/^\S{32}$/),
    javascript_token: expect.stringMatching(/^\S{32}$/),
  });
  const [rotated] = (await run('rotate-token', 'shop', 'normal')).json;
  const stats = ['--token', rotated.token, 'stats'];
  expect((await runCommandLine(stats, { env })).code).toBe(0);
  expect((await run('show', 'shop')).json[0]).toMatchObject({ email: 'a@example.com', queued: 0 });
  const [updated] = (await run('update', 'shop', '--email', '', '--limit', 'crawlers=3')).json;
  expect(updated).toMatchObject({ email: '', limits: { crawlers: 3 } });
  expect((await run('update', 'shop', '--limit', 'speed=3')).stderr).toContain('no limit \\"speed');
  expect((await run('list')).json.map(({ name }) => name)).toEqual(['default', 'shop']);
  expect((await run('delete', 'shop', '--yes')).code).toBe(0);
  const findings = (await doctor).json;
  const ofService = findings.findIndex(({ check }) => check === 'service');
  expect(findings[ofService]).toMatchObject({
    state: 'ok',
    detail: expect.stringMatching(/(sqlite|mongodb) \d/),
  });
  // What the service itself says of its set-up comes last.
  expect(findings.length).toBeGreaterThan(ofService + 3);
  expect((await run('show', 'shop')).code).toBe(4);
});

test('init and serve are all it takes to start a service on this machine', async () => {
  await using folder = await temporaryFolder();
  const env = { HOME: folder.path };
  const { stdout: version } = await runCommandLine(['--version'], { env });
  expect(version).toMatch(/^\d+\.\d+\.\d+\n$/);
  const lost = await runCommandLine(['init'], { env });
  expect([lost.code, lost.stderr]).toEqual([2, expect.stringMatching(/--token.*--local/)]);
  expect((await runCommandLine(['doctor'], { env })).stdout).toMatch(/token +missing +give it to/);
  const made = await runCommandLine(['init', '--local'], { env });
  expect([made.code, made.stderr]).toEqual([0, expect.stringContaining('queued-crawler serve')]);
  const args = ['serve', '--port', '0', '--data-dir', join(folder.path, 'data')];
  await using service = startCommandLine(args, { env });
  const url = await eventually(() => {
    const found = /Queued crawler: (\S+)/.exec(service.stderr)?.[1];
    expect(found).toBeDefined();
    return found ?? '';
  });
  expect(service.stderr).toContain(join(folder.path, '.config/queued-crawler/profiles.json'));
  const remote = { HOME: folder.path, QUEUED_CRAWLER_URL: url };
  expect((await runCommandLine(['crawler', 'create', 'shop'], { env: remote })).code).toBe(0);
  expect((await runCommandLine(['account', 'list'], { env: remote })).stdout).toContain('default');
  service.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);
});

test('shells read the completion scripts, which ask the program for what fits', async () => {
  const app = shared();
  await createCrawler(app, 'shoes');
  const env = envOf(app);
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await runCommandLine(['completion', shell], { env });
    expect([shell, code]).toEqual([shell, 0]);
    if (shell === 'bash') execFileSync('bash', ['-n'], { input: stdout });
  }
  const { stdout: script } = await runCommandLine(['completion', 'bash'], { env });
  const program = join(import.meta.dirname, '../../../bin/queued-crawler.js');
  const complete = async (...words: string[]): Promise<string[]> => {
    const line = words.map((word) => `'${word}'`).join(' ');
    const text = `queued-crawler() { "${process.execPath}" "${program}" "$@"; }
      ${script}
      COMP_WORDS=(queued-crawler ${line}); COMP_CWORD=${words.length}
      _queued_crawler; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await promisify(execFile)('bash', ['-c', text], {
      env: { ...process.env, ...env },
    });
    return stdout.split('\n').filter((word) => word !== '');
  };
  const cases: readonly [words: string[], expected: string[]][] = [
    [['cra'], ['crawler', 'crawl']],
    [
      ['crawler', 'p'],
      ['pause', 'purge'],
    ],
    [['push', 'sh'], ['shoes']],
    [
      ['push', 'shoes', '--format', ''],
      ['lines', 'ndjson', 'csv'],
    ],
    [['results', '--crawler', ''], ['shoes']],
    [['push', '--run'], ['--run-id']],
  ];
  await Promise.all(
    cases.map(async ([words, expected]) => {
      // Names of crawlers are left out when the service takes longer than a second to tell them.
      await eventually(async () =>
        expect([words, await complete(...words)]).toEqual([words, expected]),
      );
    }),
  );
});

test('a pool of proxies is made from a file, shown without its secrets, changed and removed', async () => {
  const app = shared();
  await using folder = await temporaryFolder();
  const env = envOf(app);
  const run = (...args: string[]) => runCommandLine(args, { env });
  const file = join(folder.path, 'pool.txt');
  const secret = 'sesame-seed-4714';
  const proxies = [1, 2].map((n) => `http://user:${secret}@127.0.0.1:300${n}`);
  await writeFile(file, `# two proxies\n${proxies.join('\n')}\n\n`);
  const made = await run('proxies', 'create', 'fast', '--file', file, '--countries', 'DE,FR');
  expect([made.code, made.stderr]).toEqual([0, '']);
  expect(made.stdout).toContain('127.0.0.1:3002');
  const listed = await run('--json', 'proxies', 'list');
  expect(listed.json).toMatchObject([{ name: 'fast', proxy_count: 2, countries: ['DE', 'FR'] }]);
  const changed = await run('proxies', 'update', 'fast', '--proxy', `${proxies[0]}`);
  expect(changed.stdout).not.toContain('3002');
  expect((await run('proxies', 'update', 'fast')).code).toBe(2);
  const refused = await run('proxies', 'create', 'bad', '--proxy', `http://u:${secret}@10.0.0.1`);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('proxies[0]')]);
  const shown = await run('proxies', 'show', 'fast');
  for (const { stdout, stderr } of [made, changed, refused, shown]) {
    expect(stdout + stderr).not.toContain(secret);
  }
  expect((await run('proxies', 'delete', 'fast')).code).toBe(2);
  expect((await run('proxies', 'delete', 'fast', '--yes')).code).toBe(0);
  expect((await run('--json', 'proxies', 'list')).stdout).toBe('');
});
