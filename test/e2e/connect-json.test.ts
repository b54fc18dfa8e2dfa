import { Code } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { NORMAL } from '../support/app.ts';
import { shareApp } from '../support/shared-app.ts';

const app = shareApp();

/** Calls a method as programs without a generated client do. */
async function callJson(method: string, type: string, body: string | Uint8Array<ArrayBuffer>) {
  const response = await fetch(`${app().url}/queuedcrawler.v1.${method}`, {
    method: 'POST',
    headers: { 'content-type': type, authorization: `Bearer ${NORMAL}` },
    body,
  });
  return { status: response.status, text: await response.text() };
}

function unary(method: string, message: object) {
  return callJson(method, 'application/json', JSON.stringify(message));
}

/** The one message of a stream, after the five bytes of its frame. */
function streamed(method: string, message: object) {
  const data = Buffer.from(JSON.stringify(message));
  const frame = Buffer.concat([Buffer.alloc(5), data]);
  frame.writeUInt32BE(data.byteLength, 1);
  return callJson(method, 'application/connect+json', frame);
}

test.each([
  ['a member', { name: 'shop', concurency: 3 }, 'concurency'],
  ['a member of a member', { name: 'shop', politeness: { dealyMs: 200 } }, 'dealyMs'],
  ['a value of an enum', { name: 'shop', delivery: 'webhook' }, 'webhook'],
])('%s that is not known is refused, and nothing is created', async (_, message, named) => {
  const { status, text } = await unary('CrawlerService/CreateCrawler', message);
  expect([status, text]).toEqual([400, expect.stringContaining(named)]);
  expect(JSON.parse(text)).toMatchObject({ code: 'invalid_argument' });
  expect((await app().rest('GET', `/crawler/${NORMAL}/shop`)).status).toBe(404);
});

test('an unknown condition of a filter is refused, and nothing is removed', async () => {
  const path = `/crawler/${NORMAL}`;
  await app().rest('POST', path, { name: 'filtered' });
  const url = encodeURIComponent('http://127.0.0.1:9/');
  const push = `token=${NORMAL}&crawler=filtered&callback=true&delay=3600&url=${url}`;
  expect((await app().rest('GET', `/?${push}`)).status).toBe(200);
  const { text } = await streamed('ActivityService/ActOnMatches', {
    name: 'filtered',
    action: 'MATCH_ACTION_REMOVE_JOBS',
    filter: { reasn: 'timeout' },
  });
  expect(text).toMatch(/"invalid_argument".*reasn/);
  const { json } = await app().rest('GET', `${path}/filtered/jobs?state=scheduled`);
  expect(json).toMatchObject({ jobs: [{}] });
});

test('a push may have members of its own', async () => {
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'lenient' });
  const item = { url: 'http://127.0.0.1:9/', sku: 5, parameters: { post_type: 'json' } };
  const { text } = await unary('PushService/PushBatch', { crawler: 'lenient', items: [item] });
  expect(JSON.parse(text)).toEqual({ results: [{ rid: expect.any(String) }] });
});

test('fields have their proto names or those of JSON', async () => {
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'names' });
  for (const minutes of [{ queue_timeout: 5 }, { queueTimeout: 5 }]) {
    const message = {
      crawler: 'names',
      url: 'http://127.0.0.1:9/',
      parameters: { format: 'FORMAT_JSON' },
      ...minutes,
    };
    expect((await unary('PushService/Push', message)).status).toBe(200);
  }
});

test.each([true, false])(
  'a method that is not there is unimplemented (binary: %j)',
  async (binary) => {
    const transport = createConnectTransport({
      baseUrl: app().url,
      httpVersion: '1.1',
      useBinaryFormat: binary,
    });
    const { countResults, streamResults } = StorageService.method;
    const newer = { ...countResults, name: 'NewerCount' };
    const counted = transport.unary(newer, undefined, undefined, undefined, {});
    await expect(counted).rejects.toMatchObject({
      code: Code.Unimplemented,
      rawMessage: 'There is no method queuedcrawler.v1.StorageService/NewerCount.',
    });
    const requests = (async function* () {
      yield {};
    })();
    const streaming = { ...streamResults, name: 'NewerStream' };
    const opened = transport.stream(streaming, undefined, undefined, undefined, requests);
    await expect(opened).rejects.toMatchObject({ code: Code.Unimplemented });
  },
);
