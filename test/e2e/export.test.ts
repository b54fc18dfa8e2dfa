import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WARCParser } from 'warcio';
import { NORMAL, startApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('results of a crawler or batch are exported as NDJSON, CSV and WARC, and continue where they were', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using app = await startApp();
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const run = (...args: string[]) => runCommandLine(['export', 'shop', ...args], { env });
  const push = async (path: string, more = '') => {
    const rid = await shop.push(`${site.url}${path}`, more);
    await shop.stored(rid);
    return rid;
  };
  const metadata = encodeURIComponent('{"a":"x, y"}');
  const one = await push('/page/1', `&batch=list&get_headers=true&metadata=${metadata}`);
  const two = await push('/page/2');
  const dead = await shop.push('http://127.0.0.1:1/');
  await shop.stored(dead);

  const ndjson = join(folder.path, 'shop.ndjson');
  const lines = async () => {
    const text = (await readFile(ndjson, 'utf8')).trim();
    return text.split('\n').map((line) => JSON.parse(line) as { rid: string; body: string });
  };
  expect((await run('--to', ndjson)).code).toBe(0);
  expect((await lines()).map(({ rid }) => rid)).toEqual([one, two, dead]);
  expect((await lines())[0]).toMatchObject({
    batch: 'list',
    body: expect.stringContaining('Page 1'),
  });
  // What an interrupted run has written behind its place is not there twice.
  await writeFile(ndjson, '{"half a li', { flag: 'a' });
  const three = await push('/page/3', '&batch=list');
  expect((await run('--to', ndjson)).code).toBe(0);
  expect((await lines()).map(({ rid }) => rid)).toEqual([one, two, dead, three]);
  const foreign = join(folder.path, 'foreign.ndjson');
  await writeFile(foreign, 'mine');
  const refused = await run('--to', foreign);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('exists')]);

  const csv = join(folder.path, 'list.csv');
  expect((await run('--to', csv, '--batch', 'list')).code).toBe(0);
  const [head, first, second, ...more] = (await readFile(csv, 'utf8')).split('\r\n');
  expect(head).toMatch(/^rid,pushed_url,url,cb_status/);
  expect(first).toContain(`${one},${site.url}/page/1`);
  expect(first).toContain('"{""a"": ""x, y""}"'.replaceAll(': ', ':'));
  expect([second?.slice(0, 24), more]).toEqual([three, ['']]);

  for (const name of ['shop.warc', 'shop.warc.gz']) {
    const file = join(folder.path, name);
    const exported = await run('--to', file);
    expect([exported.code, exported.stderr]).toEqual([0, expect.stringContaining('left out')]);
    const records = [];
    for await (const record of new WARCParser([await readFile(file)])) {
      records.push({
        type: record.warcType,
        version: record.warcHeaders.statusline,
        url: record.warcTargetURI,
        status: record.httpHeaders?.statusCode,
        powered: record.httpHeaders?.headers.get('content-type'),
        text: await record.contentText(),
      });
    }
    expect(records.map(({ type }) => type)).toEqual([
      'warcinfo',
      'response',
      'response',
      'response',
    ]);
    expect(records[1]).toMatchObject({
      version: 'WARC/1.1',
      url: `${site.url}/page/1`,
      status: 200,
      text: expect.stringContaining('Page 1'),
    });
  }
  const removed = await run('--to', join(folder.path, 'last.ndjson'), '--remove');
  expect(removed.code).toBe(0);
  const { json } = await app.rest('GET', `/storage/total_count?token=${NORMAL}`);
  expect(json).toEqual({ totalCount: 0 });
});
