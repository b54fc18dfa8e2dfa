import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startSite } from '../support/site.ts';

const QUERY = '&page_wait=2000&scroll=true&wait_for_selector=.x';

test('parameters of the browser are accepted with the Normal token, and named in the reply', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'plain');
  const url = `${site.url}/page/1`;

  const pushed = await crawler.tryPush(url, QUERY);
  expect(pushed.status, pushed.text).toBe(200);
  expect(Object.keys(pushed.json)).toEqual(['rid']);
  const named = pushed.headers.get('ignored_parameters')?.split(',').sort();
  expect(named).toEqual(['page_wait', 'scroll', 'wait_for_selector']);
  const stored = await crawler.stored(pushed.json.rid);
  expect(stored.json.body).toContain('Page 1');
  const plain = await crawler.tryPush(url);
  expect(plain.headers.get('ignored_parameters')).toBeNull();

  const inline = await app.rest(
    'GET',
    `/?token=${NORMAL}&format=json&scroll=true&url=${encodeURIComponent(url)}`,
  );
  expect(inline.status).toBe(200);
  expect(inline.json.ignored_parameters).toBe('scroll');
  expect(inline.headers.get('ignored_parameters')).toBe('scroll');

  const pushOnly = 'delay=60&priority=0&unique_key=&metadata=nojson';
  for (const way of ['async=true', 'format=json']) {
    const path = `/?token=${NORMAL}&${way}&${pushOnly}&scroll=true&url=${encodeURIComponent(url)}`;
    const { status, headers } = await app.rest('GET', path);
    expect(status, way).toBe(200);
    const ignored = headers.get('ignored_parameters')?.split(',').sort();
    expect(ignored, way).toEqual(['delay', 'metadata', 'priority', 'scroll']);
  }

  const transport = createConnectTransport({ baseUrl: app.url, httpVersion: '1.1' });
  const client = createClient(PushService, transport);
  const { results } = await client.pushBatch(
    {
      crawler: 'plain',
      items: [{ url, parameters: { screenshot: true } }, { url }, { url: 'no url' }],
    },
    { headers: { authorization: `Bearer ${NORMAL}` } },
  );
  expect(results.map(({ ignoredParameters }) => ignoredParameters)).toEqual([
    ['screenshot'],
    [],
    [],
  ]);
  expect(results.map(({ error }) => error?.code)).toEqual([undefined, undefined, 'invalid_url']);

  const refused = await crawler.tryPush(url, '&country=DE');
  expect([refused.status, refused.json.field]).toEqual([422, 'country']);
});
