import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp } from '../../support/app.ts';
import { runCommandLine, startCommandLine } from '../../support/command-line.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { byLength } from '../../support/length.ts';
import { startProcess } from '../../support/service-process.ts';
import { startSite } from '../../support/site.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const MIB = 1024 * 1024;

function* lines(count: number): Generator<string> {
  for (let n = 0; n < count; n += 1_000) {
    let text = '';
    for (let at = n; at < Math.min(n + 1_000, count); at++) {
      text += `http://site.example/a/rather/long/path/so/that/holding/all/would/show/${at}\n`;
    }
    yield text;
  }
}

test('any number of lines is pushed without holding them, and a killed push continues where it was', async () => {
  const count = byLength(15_000, 200_000);
  await using app = await startApp({ env: { CRAWLER_QUEUE_LIMIT: '1000000' } });
  const crawler = await createCrawler(app, 'shop');
  await crawler.post('pause');
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const args = ['push', 'shop', '--quiet', '--run-id', 'monday'];
  const pushed = async (): Promise<number> => (await crawler.details()).activity.pushed;

  await using first = startCommandLine(args, { env, input: lines(count) });
  await eventually(async () => expect(await pushed()).toBeGreaterThan(count / 3));
  const early = first.peakBytes();
  first.kill('SIGKILL');
  await first.ended;
  expect(await pushed()).toBeLessThan(count);

  await using second = startCommandLine(args, { env, input: lines(count) });
  let peak = 0;
  const watching = setInterval(() => {
    if (second.process.exitCode === null) peak = Math.max(peak, second.peakBytes());
  }, 50);
  const end = await second.ended.finally(() => clearInterval(watching));
  expect([end.code, end.stderr]).toEqual([0, `${count} accepted, 0 refused\n`]);
  expect(await pushed()).toBe(count);
  // Holding the lines as items takes about a kilobyte each.
  expect((peak - early) / MIB).toBeLessThan(60);
  expect(peak / MIB).toBeLessThan(200);
});

test('a push waits when its rate is used up, and reads lines, NDJSON and CSV with parameters', async () => {
  await using site = await startSite();
  await using app = await startApp({ env: { PUSH_RATE_PER_SECOND: '20' } });
  await using folder = await temporaryFolder();
  const crawler = await createCrawler(app, 'shop');
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const run = (args: string[], input?: string) =>
    runCommandLine(['--json', ...args], { env, ...(input === undefined ? {} : { input }) });
  const push = (args: string[], input?: string) => run(['push', 'shop', ...args], input);
  const urls = Array.from({ length: 50 }, (_, n) => `${site.url}/page/${n}`);
  const many = await push([], `# a comment\n\n${urls.join('\n')}`);
  expect(many.code, many.stderr).toBe(0);
  expect(many.json.slice(0, -1).map(({ line, url }) => [line, url])).toEqual(
    urls.map((url, n) => [n + 3, url]),
  );
  expect(many.json.at(-1)).toEqual({ accepted: 50, refused: 0, run_id: expect.any(String) });
  expect(new Set(many.json.slice(0, -1).map(({ rid }) => rid)).size).toBe(50);

  const csv = join(folder.path, 'urls.csv');
  const heading = 'url,format,get_headers,method,body\n';
  await writeFile(
    csv,
    `${heading}"${site.url}/echo?a=1,2",json,true,POST,"x\ny"\n${site.url}/echo?b,,,,\n`,
  );
  const ndjson = `{"url":"${site.url}/echo?c","parameters":{"user_agent":"mine"}}\n`;
  const done = [
    ...(await push(['--file', csv])).json,
    ...(await push(['--param', 'user_agent=yours'], ndjson)).json,
  ];
  const [posted, plain, , own] = done;
  const stored = async ({ rid }: { rid: string }) => (await crawler.stored(rid)).json;
  const record = await stored(posted);
  expect(JSON.parse(record.body)).toMatchObject({ method: 'POST', body: 'x\ny' });
  const [whole] = (await run(['results', posted.rid])).json;
  expect(whole).toMatchObject({ rid: posted.rid, body: record.body });
  expect(whole.original_headers).toMatchObject({ content_type: expect.any(String) });
  expect(JSON.parse((await stored(plain)).body)).toMatchObject({ method: 'GET' });
  expect(JSON.parse((await stored(own)).body).headers['user-agent']).toBe('mine');

  const bad = await push(['--format', 'csv'], `url,speed\n${site.url},9\n`);
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('\\"speed\\"')]);
  const cut = await push(['--format', 'ndjson'], '{"url":');
  expect([cut.code, cut.json[0].error.code]).toEqual([7, 'invalid_json']);
});

test('results come into a folder, each once and whole, though program and service are killed', async () => {
  const count = byLength(40, 400);
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const rate = byLength('10', '40');
  const env = { DATA_DIR: join(folder.path, 'data'), PUSH_RATE_PER_SECOND: rate };
  const pages = join(folder.path, 'pages');
  let service = await startProcess(env);
  try {
    const start = (args: string[], input?: string) =>
      startCommandLine(args, {
        env: {
          HOME: '/nonexistent',
          QUEUED_CRAWLER_URL: service.url,
          QUEUED_CRAWLER_TOKEN: NORMAL,
        },
        ...(input === undefined ? {} : { input }),
      });
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'shop', concurrency: 5 });
    // The push continues while the service is killed.
    const urls = Array.from({ length: count }, (_, n) => `${site.url}/page/${n}?delay=30`);
    await using pushing = start(['push', 'shop', '--batch-size', '5'], urls.join('\n'));
    const written = async (): Promise<number> => {
      const names = await readdir(pages).catch(() => []);
      return names.filter((name) => name.endsWith('.html')).length;
    };
    const follow = ['results', '--crawler', 'shop', '--follow', '--to', pages, '--remove'];
    for (const share of [0.2, 0.6]) {
      await using following = start(follow);
      await eventually(async () => expect(await written()).toBeGreaterThan(share * count));
      await service.kill9();
      service = await startProcess({ ...env, PORT: String(service.port) });
      await eventually(async () => {
        expect(await written(), following.stderr).toBeGreaterThan((share + 0.1) * count);
      });
      following.kill('SIGKILL');
      await following.ended;
    }
    // The rest, as rids on standard input: those that are there already are not waited for.
    const pushed = await pushing.ended;
    expect(pushed.code).toBe(0);
    // Before it says that it waits for the service.
    expect(pushed.stderr.endsWith(`${count} accepted, 0 refused\n`)).toBe(true);
    const rids = pushed.stdout
      .trim()
      .split('\n')
      .map((line) => line.slice(0, 24));
    await using rest = start(['results', '--to', pages], pushed.stdout);
    expect((await rest.ended).code).toBe(0);
    expect(await written()).toBe(count);
    for (const rid of rids) {
      const facts = JSON.parse(await readFile(join(pages, `${rid}.json`), 'utf8'));
      const page = await readFile(join(pages, `${rid}.html`), 'utf8');
      expect(facts).toMatchObject({ rid, cb_status: 200, size: Buffer.byteLength(page) });
      expect(page).toContain('</html>');
    }
  } finally {
    await service.kill9();
  }
});

test('more jobs are listed than a page of the service has', async () => {
  await using app = await startApp();
  const crawler = await createCrawler(app, 'shop');
  await crawler.post('pause');
  const items = Array.from({ length: 250 }, (_, n) => ({ url: `https://site.example/${n}` }));
  await crawler.post('push_batch', { items });
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const listed = await runCommandLine(['--json', 'jobs', 'list', 'shop', '--limit', '1000'], {
    env,
  });
  expect(listed.code, listed.stderr).toBe(0);
  expect(new Set(listed.json.map(({ url }) => url)).size).toBe(250);
});

test.each(['terminate', 'kill9'] as const)(
  'a batch is followed across a restart of the service: %s',
  async (end) => {
    await using site = await startSite();
    await using folder = await temporaryFolder();
    const settings = {
      DATA_DIR: folder.path,
      NORMAL_TOKEN: NORMAL,
      JAVASCRIPT_TOKEN: JAVASCRIPT,
      NETWORK_ALLOW: site.host,
    };
    await using service = await startProcess(settings);
    const path = `/crawler/${NORMAL}`;
    await service.rest('POST', path, { name: 'shop' });
    await service.rest('POST', `${path}/shop/pause`);
    const items = [{ url: `${site.url}/page/1`, batch: 'monday' }];
    await service.rest('POST', `${path}/shop/push_batch`, { items });
    const env = {
      HOME: '/nonexistent',
      QUEUED_CRAWLER_URL: service.url,
      QUEUED_CRAWLER_TOKEN: NORMAL,
    };
    expect((await runCommandLine(['batches', 'close', 'shop', 'monday'], { env })).code).toBe(0);
    await using watching = startCommandLine(['batches', 'watch', 'shop', 'monday'], { env });
    await eventually(() => expect(watching.stdout).toContain('monday'));
    await service[end]();
    await using again = await startProcess({ ...settings, PORT: String(service.port) });
    await again.rest('POST', `${path}/shop/unpause`);
    const { code, stdout, stderr } = await watching.ended;
    expect(code, stderr).toBe(0);
    expect(stdout.trim().split('\n').at(-1)).toContain('1 completed');
  },
);
