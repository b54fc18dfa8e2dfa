import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { byLength } from '../support/length.ts';
import { startReceiver } from '../support/receiver.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const URLS = byLength(150, 1_000);

async function pushAll(service: ServiceProcess, name: string, site: string): Promise<string[]> {
  const items = Array.from({ length: URLS }, (_, n) => ({
    url: `${site}/page/${n}?delay=3`,
    priority: n % 10,
    metadata: `{"n":${n}}`,
    delay: n % 50 === 0 ? 1 : 0,
    unique_for: 3_600,
    batch: 'list',
  }));
  const reply = await service.rest('POST', `/crawler/${NORMAL}/${name}/push_batch`, { items });
  return reply.json.results.map((result: { rid: string }) => result.rid);
}

async function completed(service: ServiceProcess, name: string): Promise<number> {
  const { json } = await service.rest('GET', `/crawler/${NORMAL}/${name}`);
  return json.activity.completed;
}

test(`${2 * URLS} URLs survive kill -9 of the service, again and again: each is stored or delivered`, async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using receiver = await startReceiver();
  const env = { DATA_DIR: folder.path };
  let service = await startProcess(env);
  try {
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', callback_url: receiver.url });
    const stored = await pushAll(service, 'store', site.url);
    const hooked = await pushAll(service, 'hook', site.url);
    const batch = `/crawler/${NORMAL}/hook/batches/list`;
    const { id } = (await service.rest('POST', `${batch}/close`)).json;

    for (const share of byLength([0.1, 0.6], [0.1, 0.3, 0.5, 0.7])) {
      await eventually(async () => {
        const done = (await completed(service, 'store')) + (await completed(service, 'hook'));
        expect(done).toBeGreaterThan(share * 2 * URLS);
      });
      await service.kill9();
      service = await startProcess(env);
      // What was pushed is known by its key, whether it has ended or not.
      expect(await pushAll(service, 'store', site.url)).toEqual(stored);
    }
    await eventually(async () => {
      const { json } = await service.rest('GET', `/crawler/${NORMAL}/stats`);
      expect(json).toMatchObject({
        completed: 2 * URLS,
        failed: 0,
        queue: { waiting: 0, retrying: 0 },
        concurrency: { running: 0 },
      });
      for (const crawler of json.crawlers) {
        expect(crawler.activity).toMatchObject({ pushed: URLS, deliveries_pending: 0 });
      }
    });
    await eventually(() => expect(receiver.byRid(id).length).toBeGreaterThan(0));
    expect(new Set(receiver.deliveries.map((post) => post.rid))).toEqual(new Set([...hooked, id]));
    const counts = { accepted: URLS, completed: URLS, failed: 0, removed: 0 };
    expect((await service.rest('GET', batch)).json).toMatchObject({
      state: 'completed',
      ...counts,
    });
    const open = await service.rest('GET', `/crawler/${NORMAL}/store/batches/list`);
    expect(open.json).toMatchObject({ state: 'open', ...counts });
    const rids = await service.rest('GET', `/storage/rids?token=${NORMAL}&limit=10000`);
    expect(new Set(rids.json)).toEqual(new Set(stored));
    for (const { rid, headers } of receiver.deliveries) {
      if (rid === id) continue;
      expect(headers['metadata']).toBe(`{"n":${hooked.indexOf(rid)}}`);
    }
    expect(await service.terminate()).toBe(0);
  } finally {
    await service.kill9();
  }
});

test('SIGTERM lets what is being crawled end, gives the rest back and repeats nothing', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const env = { DATA_DIR: folder.path, SHUTDOWN_SECONDS: '10' };
  await using first = await startProcess(env);
  await first.rest('POST', `/crawler/${NORMAL}`, { name: 'store', concurrency: 4 });
  const items = Array.from({ length: 40 }, (_, n) => ({ url: `${site.url}/page/${n}?delay=150` }));
  await first.rest('POST', `/crawler/${NORMAL}/store/push_batch`, { items });
  await eventually(() => expect(site.hits()).toBeGreaterThan(8));
  expect(await first.terminate()).toBe(0);

  await using second = await startProcess(env);
  await eventually(async () => expect(await completed(second, 'store')).toBe(40));
  expect(site.hits()).toBe(40);
});

test('a call that never ends does not keep crawls that never end from being given back in time', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using service = await startProcess({ DATA_DIR: folder.path, SHUTDOWN_SECONDS: '4' });
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
  const items = [{ url: `${site.url}/hang` }];
  await service.rest('POST', `/crawler/${NORMAL}/store/push_batch`, { items });
  await eventually(() => expect(site.concurrent).toBe(1));
  const call = connect(service.port, '127.0.0.1');
  const ended: string[] = [];
  call.on('error', () => undefined).once('close', () => ended.push('call'));
  call.write(`POST /crawler/${NORMAL} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n`);
  call.write('content-type: application/json\r\ncontent-length: 1000\r\n\r\n');
  const [reply] = await once(call, 'data');
  expect(String(reply)).toMatch(/^HTTP\/1.1 100 /);
  const stopped = service.terminate();
  await eventually(() => expect(site.concurrent).toBe(0));
  ended.push('crawl');
  expect(await stopped).toBe(0);
  await eventually(() => expect(ended).toEqual(['crawl', 'call']));
});

test('a second process on the same folder is told why it cannot start', async () => {
  await using folder = await temporaryFolder();
  await using first = await startProcess({ DATA_DIR: folder.path });
  await expect(startProcess({ DATA_DIR: folder.path })).rejects.toThrow(/DATA_DIR/);
  expect((await first.rest('GET', '/readyz')).status).toBe(200);
});

test('the first start prints both tokens and lines that work as pasted; later starts do not', async () => {
  await using folder = await temporaryFolder();
  const env = { DATA_DIR: folder.path, NORMAL_TOKEN: '', JAVASCRIPT_TOKEN: '' };
  await using first = await startProcess(env);
  const shown = await eventually(() => {
    expect(first.errors).toContain('/storage?');
    return first.errors;
  });
  const token = /Normal token:\s+(\S+)/.exec(shown)?.[1] ?? '';
  expect(shown).toMatch(/JavaScript token:\s+\S{32}/);
  const path = new URL(/curl -X POST (\S+)/.exec(shown)?.[1] ?? '').pathname;
  expect(path).toBe(`/crawler/${token}`);
  expect((await first.rest('POST', path, { name: 'first' })).status).toBe(200);
  const push = new URL(/curl "(\S+callback=true\S+)"/.exec(shown)?.[1] ?? '');
  expect((await first.rest('GET', push.pathname + push.search)).json.rid).toMatch(/^[0-9a-f]{24}$/);
  await first.terminate();
  await using second = await startProcess(env);
  expect(second.output + second.errors).not.toContain(token);
  expect((await second.rest('GET', `${path}/first`)).status).toBe(200);
});

test('a bad setting stops the start and is named', async () => {
  await expect(startProcess({ PORT: 'eighty' })).rejects.toThrow(/PORT: must be a whole number/);
});

test('a first start that fails keeps the tokens for the one that does not', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const env = { DATA_DIR: folder.path, NORMAL_TOKEN: '', JAVASCRIPT_TOKEN: '' };
  await expect(startProcess({ ...env, PORT: String(site.port) })).rejects.toThrow(/EADDRINUSE/);
  await using service = await startProcess(env);
  await eventually(() => expect(service.errors).toMatch(/Normal token:\s+\S{32}/));
});

test('an argument that means nothing is refused', async () => {
  await expect(startProcess({}, [], ['--bogus'])).rejects.toThrow(/unknown argument --bogus/);
});
