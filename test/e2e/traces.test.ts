import { expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { mongodProgram } from '../support/mongod.ts';
import { testDatabase } from '../support/mongodb.ts';
import {
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
} from '../support/otlp-receiver.ts';
import { type ReceivedPost, startReceiver } from '../support/receiver.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const CLIENT = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
const traceparent = `00-${CLIENT.traceId}-${CLIENT.spanId}-01`;

const NAMES = [
  'POST /crawler/{token}/{crawler}/push_batch',
  'send shop',
  'process shop',
  'wait in queue',
  'GET',
  'store',
  'POST',
];

/** The spans of the client's trace, once all of the names have come. */
function trace(otlp: OtlpReceiver): Promise<Map<string, ReceivedSpan>> {
  return eventually(() => {
    const own = otlp.spans.filter(({ traceId }) => traceId === CLIENT.traceId);
    expect(own.map(({ name }) => name)).toEqual(expect.arrayContaining(NAMES));
    return new Map(own.map((span) => [span.name, span]));
  });
}

function assertOneTrace(spans: Map<string, ReceivedSpan>, post: ReceivedPost | undefined): void {
  const parentOf = (name: string): string | undefined => spans.get(name)?.parentSpanId;
  const id = (name: string): string | undefined => spans.get(name)?.spanId;
  const [call = '', send = '', process = '', wait = '', crawl = '', store = '', delivery = ''] =
    NAMES;
  expect(parentOf(call)).toBe(CLIENT.spanId);
  expect(parentOf(send)).toBe(id(call));
  expect(parentOf(process)).toBe(id(send));
  expect(parentOf(wait)).toBe(id(process));
  expect(parentOf(crawl)).toBe(id(process));
  expect(parentOf(store)).toBe(id(process));
  expect(parentOf(delivery)).toBe(id(process));
  expect(post?.headers['traceparent']).toBe(`00-${CLIENT.traceId}-${id(delivery)}-01`);
  expect(spans.get(process)).toMatchObject({
    kind: 5,
    attributes: {
      'messaging.system': 'queued_crawler',
      'messaging.destination.name': 'shop',
      'messaging.message.id': post?.rid,
    },
  });
  expect(spans.get(crawl)).toMatchObject({
    kind: 3,
    attributes: { 'http.response.status_code': 200, 'server.address': '127.0.0.1' },
  });
  expect(spans.get(call)).toMatchObject({
    kind: 2,
    attributes: {
      'http.route': '/crawler/{token}/{crawler}/push_batch',
      'http.response.status_code': 200,
    },
  });
  expect(JSON.stringify([...spans])).not.toMatch(new RegExp(`${NORMAL}|secret`));
}

async function createPaused(service: Pick<ServiceProcess, 'rest'>, callbackUrl: string) {
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'shop', callback_url: callbackUrl });
  await service.rest('POST', `/crawler/${NORMAL}/shop/pause`);
}

function push(service: { readonly url: string }, url: string): Promise<Response> {
  return fetch(`${service.url}/crawler/${NORMAL}/shop/push_batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent },
    body: JSON.stringify({ items: [{ url }] }),
  });
}

test('one trace leads from the push through the queue and a restart to the webhook', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using otlp = await startOtlpReceiver();
  const env = {
    DATA_DIR: folder.path,
    OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=of%20ours',
  };
  await using before = await startProcess(env);
  await createPaused(before, receiver.url);
  expect((await push(before, `${site.url}/page/1?secret=1`)).status).toBe(200);
  await before.terminate();
  await using after = await startProcess(env);
  await after.rest('POST', `/crawler/${NORMAL}/shop/unpause`);
  const [post] = await receiver.until(1);
  const spans = await trace(otlp);
  assertOneTrace(spans, post);
  expect(new Set([...spans.values()].map(({ instance }) => instance)).size).toBe(2);
  expect(otlp.headers).toMatchObject({ 'x-key': 'of ours' });
});

test.skipIf(mongodProgram() === undefined)(
  'one trace leads from the process that answered to the one that crawls',
  async () => {
    await using site = await startSite();
    await using receiver = await startReceiver();
    await using otlp = await startOtlpReceiver();
    await using database = testDatabase();
    const env = { MONGODB_URI: database.uri, OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url };
    await using api = await startProcess({ ...env, ROLE: 'api' });
    await using _worker = await startProcess({ ...env, ROLE: 'worker' });
    await createPaused(api, receiver.url);
    await push(api, `${site.url}/page/1?secret=1`);
    await api.rest('POST', `/crawler/${NORMAL}/shop/unpause`);
    const [post] = await receiver.until(1);
    const spans = await trace(otlp);
    assertOneTrace(spans, post);
    expect(spans.get('send shop')?.instance).not.toBe(spans.get('process shop')?.instance);
  },
);

test("without a receiver of traces a client's trace still reaches its webhook; other pushes carry none", async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  await createPaused(app, receiver.url);
  await push(app, `${site.url}/page/1`);
  const other = `token=${NORMAL}&crawler=shop&url=${encodeURIComponent(`${site.url}/page/2`)}`;
  await app.rest('GET', `/?${other}`, undefined, { traceparent: 'not one' });
  await app.rest('POST', `/crawler/${NORMAL}/shop/unpause`);
  await receiver.until(2);
  const sent = receiver.deliveries.map(({ headers }) => headers['traceparent']);
  expect(new Set(sent)).toEqual(new Set([traceparent, undefined]));
});

test('an unreachable receiver of traces costs a warning, nothing else', async () => {
  await using site = await startSite();
  await using app = await startApp({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
  });
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
  const url = encodeURIComponent(`${site.url}/page/1`);
  expect((await app.rest('GET', `/?token=${NORMAL}&crawler=store&url=${url}`)).status).toBe(200);
  await eventually(() =>
    expect(app.log.join('')).toMatch(/"reason":"ECONNREFUSED".*traces could not be sent/),
  );
});

test('a client decides whether its trace is kept, a stranger does not', async () => {
  await using otlp = await startOtlpReceiver();
  await using app = await startApp({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url, OTEL_TRACES_SAMPLER_ARG: '0' },
  });
  const call = (path: string, token: string) =>
    fetch(app.url + path, { headers: { traceparent, authorization: `Bearer ${token}` } });
  for (const path of [`/crawler/${'x'.repeat(32)}`, '/accounts', '/nowhere', '/docs']) {
    await (await call(path, 'nobody')).text();
  }
  expect((await call(`/crawler/${NORMAL}`, NORMAL)).status).toBe(200);
  expect((await call('/accounts', ADMIN)).status).toBe(200);
  await eventually(() => {
    expect(otlp.spans.filter(({ kind }) => kind === 2)).toHaveLength(2);
  });
  expect(otlp.spans.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['GET /crawler/{token}', 'GET /accounts']),
  );
});
