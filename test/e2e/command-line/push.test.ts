import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../../support/app.ts';
import {
  type CommandLineEnd,
  runCommandLine,
  startCommandLine,
} from '../../support/command-line.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { shareApp } from '../../support/shared-app.ts';

const shared = shareApp();

async function pausedCrawler(app: TestApp): Promise<void> {
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
}

function push(app: TestApp, input: string, ...args: string[]): Promise<CommandLineEnd> {
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  return runCommandLine(['push', 'shop', ...args], { env, input });
}

test('a broken line of NDJSON is refused alone, as that of a list is, and the rest is pushed', async () => {
  const app = shared();
  await pausedCrawler(app);
  const lines = [
    '{"url":"http://a.example/1"}',
    '{"url":"http://a.example/2"',
    '{"url":"http://a.example/3","speed":9}',
    'nonsense',
    '{"url":"http://a.example/5"}',
  ].join('\n');
  const end = await push(app, lines);
  expect(end.code).toBe(7);
  expect(end.stdout).toMatch(/^\S{24} http:\/\/a.example\/1\n\S{24} http:\/\/a.example\/5\n$/);
  expect(end.stderr).toContain('line 2: this is not a JSON object (invalid_json)\n');
  expect(end.stderr).toMatch(/line 3: http:\S+: "speed" is neither .* parameter \(invalid_speed\)/);
  expect(end.stderr).toMatch(/line 4: nonsense: .*\(invalid_url\)/);
  expect(end.stderr).toContain('2 accepted, 3 refused');
  const { json } = await push(app, lines, '--json');
  expect(json.slice(0, 2)).toEqual([
    { line: 2, url: '', error: { code: 'invalid_json', message: 'this is not a JSON object' } },
    {
      line: 3,
      url: 'http://a.example/3',
      error: { code: 'invalid_speed', message: expect.stringContaining('"speed"'), field: 'speed' },
    },
  ]);
});

test('parameters that need the JavaScript token are named once on standard error', async () => {
  const app = shared();
  await pausedCrawler(app);
  const lines = [
    '{"url":"http://a.example/1","scroll":true}',
    '{"url":"http://a.example/2","scroll":true,"page_wait":500}',
    '{"url":"http://a.example/3"}',
  ].join('\n');
  for (const args of [[], ['--json']]) {
    const { code, stderr } = await push(app, lines, ...args);
    expect(code).toBe(0);
    const named = stderr.split('\n').filter((line) => line.includes('JavaScript token'));
    expect(named).toHaveLength(1);
    const [text, names = ''] = (named[0] ?? '').split(': ');
    expect(text).toBe('these parameters have no effect without the JavaScript token');
    expect(names.split(', ').sort()).toEqual(['page_wait', 'scroll']);
  }
  expect((await push(app, 'http://a.example/4')).stderr).toBe('1 accepted, 0 refused\n');
});

test('--close-batch passes over a batch that no URL was queued for', async () => {
  const app = shared();
  await pausedCrawler(app);
  const url = 'http://a.example/1';
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  function pushList(batch: string, input: string): Promise<CommandLineEnd> {
    const args = ['push', 'shop', '--unique', '--batch', batch, '--close-batch', '--quiet'];
    return runCommandLine(args, { env, input });
  }
  expect((await pushList('monday', url)).code).toBe(0);
  const none = 'no URL was queued for the batch, so there is nothing to close\n';
  expect(await pushList('tuesday', url)).toMatchObject({
    code: 0,
    stderr: `0 accepted, 1 queued before, 0 refused\n${none}`,
  });
  expect(await pushList('tuesday', '')).toMatchObject({
    code: 0,
    stderr: `0 accepted, 0 refused\n${none}`,
  });
  expect((await pushList('tuesday', 'nonsense')).code).toBe(7);
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/shop/batches`);
  expect(json.batches).toMatchObject([{ name: 'monday', state: 'closed' }]);
});

test('an empty cell of CSV is no value: the option of the command applies', async () => {
  const app = shared();
  await pausedCrawler(app);
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const input = [
    'url,batch,priority,metadata',
    'http://a.example/1,,,',
    'http://a.example/2,own,2,"{""n"":2}"',
  ].join('\n');
  const options = ['--batch', 'list', '--priority', '7', '--metadata', '{"n":0}'];
  const args = ['push', 'shop', '--format', 'csv', ...options];
  expect((await runCommandLine(args, { env, input })).code).toBe(0);
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/shop/jobs`);
  expect(json.jobs).toMatchObject([
    { url: 'http://a.example/1', batch: 'list', priority: 7, metadata: '{"n":0}' },
    { url: 'http://a.example/2', batch: 'own', priority: 2, metadata: '{"n":2}' },
  ]);
});

test('a push that is interrupted in its first call says how it continues, and queues nothing twice', async () => {
  // So the first call has URLs that are queued, and others that wait for the rate, for half a minute.
  await using app = await startApp({ env: { PUSH_RATE_PER_SECOND: '4' } });
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const input = Array.from({ length: 120 }, (_, n) => `http://a.example/${n}\n`).join('');
  await using program = startCommandLine(['push', 'shop'], { env, input });
  await eventually(async () => expect((await shop.details()).activity.waiting).toBeGreaterThan(0));
  program.kill('SIGINT');
  const { code, stdout, stderr } = await program.ended;
  expect([code, stdout]).toEqual([130, '']);
  const [, runId = ''] =
    /^0 URLs done, more may be queued; .* --run-id (\S+) does the rest$/m.exec(stderr) ?? [];
  const again = await runCommandLine(['push', 'shop', '--run-id', runId], { env, input });
  expect([again.code, again.stderr]).toEqual([0, '120 accepted, 0 refused\n']);
  expect((await shop.details()).activity.waiting).toBe(120);
});

test('a run id that is empty or too long is a wrong use', async () => {
  const app = shared();
  for (const runId of ['', 'x'.repeat(41)]) {
    const { code, stderr } = await push(app, 'http://a.example/', `--run-id=${runId}`);
    expect(code).toBe(2);
    expect(stderr).toContain('--run-id must have 1 to 40 characters');
    expect(stderr).not.toContain('does the rest');
  }
});
