import { create, fromJson, type JsonObject } from '@bufbuild/protobuf';
import { ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import { BadRequestSchema } from '../../gen/google/rpc/error_details_pb.ts';
import {
  type PushItem,
  PushItemSchema,
  PushRequestSchema,
  type PushResult,
  PushService,
  PushStreamRequestSchema,
  type PushStreamResponse,
} from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { NORMAL, type TestApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { type CrawlerClient, createCrawler } from '../support/crawler-client.ts';
import { createGrpcClient } from '../support/grpc-client.ts';
import { shareApp } from '../support/shared-app.ts';

const DAY_MS = 86_400_000;
const far = new Date(Date.now() + 31 * DAY_MS).toISOString();

/** The field that is at fault, and what is wrong about it. */
const WRONG: readonly (readonly [field: string, wrong: JsonObject])[] = [
  ['url', { url: 'nonsense' }],
  ['queue_timeout', { queue_timeout: 10_081 }],
  ['queue_timeout', { queue_timeout: -1 }],
  ['callback_headers', { callback_headers: 'no-value' }],
  ['metadata', { metadata: '{' }],
  ['metadata', { metadata: JSON.stringify('x'.repeat(1_023)) }],
  ['not_before', { not_before: far }],
  ['delay', { not_before: '2020-01-01T00:00:00Z', delay: 5 }],
  ['delay', { delay: -1 }],
  ['delay', { delay: 2_592_001 }],
  ['priority', { priority: 10 }],
  ['priority', { priority: -1 }],
  ['unique_key', { unique_key: 'x'.repeat(257) }],
  ['unique_for', { unique_for: -1 }],
  ['unique_for', { unique_for: 2_592_001 }],
  ['batch', { batch: '-no' }],
  ['batch', { batch: 'x'.repeat(65) }],
  ['batch', { batch: 'closed' }],
  ['max_age', { parameters: { max_age: 0 } }],
  ['max_age', { parameters: { max_age: 2_592_001 } }],
];

const urlOf = (n: number): string => `https://example.com/${n}`;
/** Each wrong item between two that are as they should be. */
const ITEMS: readonly JsonObject[] = [
  { url: urlOf(-1) },
  ...WRONG.flatMap(([, wrong], n) => [{ url: urlOf(n), ...wrong }, { url: urlOf(n) }]),
];
const FIELDS = [undefined, ...WRONG.flatMap(([field]) => [field, undefined])];

/** An item with its parameters among its fields, as a query and a line of a file have them. */
const flat = ({
  parameters,
  ...fields
}: JsonObject): Readonly<Record<string, string | number>> => ({
  ...(fields as Readonly<Record<string, string | number>>),
  ...(parameters as Readonly<Record<string, number>> | undefined),
});

/** A crawler that crawls nothing, with a closed batch. */
async function createPaused(app: TestApp, name: string): Promise<CrawlerClient> {
  const hook = await createCrawler(app, name, { callback_url: 'http://127.0.0.1:9999/' });
  await hook.post('pause');
  await hook.post('push_batch', { items: [{ url: urlOf(0), batch: 'closed' }] });
  await hook.post('batches/closed/cancel');
  return hook;
}

/** Expects the refusals and nothing else, and all other items in the queue. */
async function expectRefusals(
  hook: CrawlerClient,
  results: readonly Pick<PushResult, 'rid' | 'error'>[],
): Promise<void> {
  expect(results.map(({ error }) => error?.field)).toEqual(FIELDS);
  const rids = results.flatMap(({ rid, error }) => (error === undefined ? rid : []));
  expect(new Set(rids).size).toBe(WRONG.length + 1);
  for (const rid of rids) expect(rid).toMatch(/^[0-9a-f]{24}$/);
  expect((await hook.details()).activity).toMatchObject({
    pushed: WRONG.length + 2,
    waiting: WRONG.length + 1,
  });
}

/** Sends requests of these items on one stream, one after the answer of the other. */
async function pushByStream(
  app: TestApp,
  crawler: string,
  requests: readonly (readonly PushItem[])[],
): Promise<PushStreamResponse[]> {
  using client = createGrpcClient(`127.0.0.1:${app.port}`);
  const stream = client.stream(PushService.method.pushStream, NORMAL);
  const left = requests.entries();
  const send = (): void => {
    const next = left.next();
    if (next.done === true) return void stream.end();
    const [n, items] = next.value;
    stream.write(
      create(PushStreamRequestSchema, { crawler, items: [...items], sequence: BigInt(n) }),
    );
  };
  const responses: PushStreamResponse[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    stream.on('data', (response) => {
      responses.push(response);
      send();
    });
    stream.on('end', resolve);
    stream.on('error', reject);
  });
  send();
  await ended;
  return responses;
}

const shared = shareApp();

test('a push with a wrong field is refused by the path of the field over gRPC, by its name over REST', async () => {
  const app = shared();
  const hook = await createPaused(app, 'hook');
  const { push } = createClient(PushService, createGrpcTransport({ baseUrl: app.url }));
  for (const [n, [field, wrong]] of WRONG.entries()) {
    const item = { url: urlOf(n), ...wrong };
    const request = fromJson(PushRequestSchema, { ...item, token: NORMAL, crawler: 'hook' });
    const failure = ConnectError.from(await push(request).catch((error: unknown) => error));
    const [violation] = failure.findDetails(BadRequestSchema)[0]?.fieldViolations ?? [];
    const path = 'parameters' in wrong ? `parameters.${field}` : field;
    expect([field, failure.code, violation?.field]).toEqual([field, 3, path]);

    const { url, ...query } = flat(item);
    const more = Object.entries(query).map(([name, value]) => {
      return `&${name}=${encodeURIComponent(String(value))}`;
    });
    const reply = await hook.tryPush(String(url), more.join(''));
    expect([field, reply.status, reply.json.field]).toEqual([field, 422, field]);
  }
  expect((await hook.details()).activity).toMatchObject({ pushed: 1, waiting: 0 });
});

test('wrong items of a batch are refused by the name of their field, and cost no other', async () => {
  const app = shared();
  const overRest = await createPaused(app, 'rest');
  const { json } = await overRest.post('push_batch', { items: ITEMS });
  await expectRefusals(overRest, json.results);

  const overStream = await createPaused(app, 'stream');
  const items = ITEMS.map((item) => fromJson(PushItemSchema, item));
  const middle = items.length / 2;
  const responses = await pushByStream(app, 'stream', [
    items.slice(0, middle),
    items.slice(middle),
  ]);
  expect(responses.map(({ sequence }) => sequence)).toEqual([0n, 1n]);
  await expectRefusals(
    overStream,
    responses.flatMap(({ results }) => results),
  );
});

test('lines of a file with a wrong column are refused by its name, and cost no other', async () => {
  const app = shared();
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const lines = ITEMS.map(flat);
  const columns = [...new Set(lines.flatMap((line) => Object.keys(line)))];
  const quoted = (value: string | number | undefined): string =>
    `"${String(value ?? '').replaceAll('"', '""')}"`;
  const files = {
    ndjson: lines.map((line) => JSON.stringify(line)),
    csv: [columns.join(','), ...lines.map((line) => columns.map((n) => quoted(line[n])).join(','))],
  };
  for (const [format, file] of Object.entries(files)) {
    const hook = await createPaused(app, format);
    const args = ['--json', 'push', format, '--format', format];
    const run = await runCommandLine(args, { env, input: file.join('\n') });
    expect([run.code, run.stderr]).toEqual([7, '']);
    const told = run.json.slice(0, -1);
    await expectRefusals(hook, told);
    const [, first] = told;
    expect(first).toMatchObject({ line: format === 'csv' ? 3 : 2, url: 'nonsense' });
  }
});

test('items of a batch with a value of another type are refused by its name, and cost no other', async () => {
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
  const wrong = {
    url: 5,
    body: '*',
    priority: 'high',
    delay: 1.5,
    not_before: 'soon',
    unique: 'once',
    metadata: { order: 7 },
    parameters: 'none',
  };
  const items = [
    { url: urlOf(1) },
    ...Object.entries(wrong).map(([name, value]) => ({ url: urlOf(2), [name]: value })),
    { url: urlOf(2), parameters: { format: 'pdf' } },
    'https://example.com/',
    { url: urlOf(3) },
  ];
  const request = { items, request_id: 'once' };
  const { status, json } = await shop.post('push_batch', request);
  expect([status, json.results.length]).toEqual([200, items.length]);
  const fields = json.results.map(({ error }: { error?: { field: string } }) => error?.field);
  expect(fields).toEqual([undefined, ...Object.keys(wrong), 'format', 'items', undefined]);
  expect(json.results[3].error).toMatchObject({
    code: 'invalid_priority',
    message: 'items[3].priority must be a whole number.',
  });
  expect((await shop.details()).activity).toMatchObject({ pushed: 2 });
  expect((await shop.post('push_batch', request)).json).toEqual(json);
});

test('a repeated request_id answers each item by its place, whatever is valid by then', async () => {
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
  const send = async (...urls: string[]) => {
    const items = urls.map((url) => ({ url }));
    const { status, json } = await shop.post('push_batch', { items, request_id: 'once' });
    expect([status, json.results.length]).toEqual([200, urls.length]);
    return json.results as { rid?: string; error?: { code: string } }[];
  };
  const [refused, queued] = await send('no url', urlOf(1));
  expect(refused?.error?.code).toBe('invalid_url');
  const [unqueued, same, beyond] = await send(urlOf(2), urlOf(1), urlOf(3));
  expect([unqueued?.error?.code, same]).toEqual(['request_id_used', queued]);
  expect(beyond?.error).toMatchObject({
    code: 'request_id_used',
    field: 'request_id',
    retry_after_ms: 1,
  });
  expect((await send('no url', 'no url'))[1]).toEqual(queued);
  expect((await shop.details()).activity).toMatchObject({ pushed: 1 });
});

test('lines of a file with a value of another type are refused, and cost no other', async () => {
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  await shop.post('pause');
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const wrong = { priority: 'high', delay: '1h', not_before: 'soon', unique: 'once', max_age: 'x' };
  const lines = [
    { url: urlOf(1) },
    ...Object.entries(wrong).map(([name, value]) => ({ url: urlOf(2), [name]: value })),
    { url: '' },
    { url: urlOf(3) },
  ];
  const input = lines.map((line) => JSON.stringify(line)).join('\n');
  const run = await runCommandLine(['--json', 'push', 'shop', '--format', 'ndjson'], {
    env,
    input,
  });
  expect([run.code, run.stderr]).toEqual([7, '']);
  const refused = run.json.flatMap(({ line, error }) => (error ? [[line, error.field]] : []));
  expect(refused).toEqual([
    ...Object.keys(wrong).map((name, at) => [at + 2, name]),
    [lines.length - 1, 'url'],
  ]);
  expect(run.json.at(-1)).toMatchObject({ accepted: 2, refused: refused.length });
  expect((await shop.details()).activity).toMatchObject({ pushed: 2 });
  const option = ['push', 'shop', urlOf(1), '--not-before', 'soon'];
  const stopped = await runCommandLine(option, { env });
  expect([stopped.code, stopped.stderr]).toEqual([2, expect.stringContaining('not_before must')]);
  const later = ['--json', 'push', 'shop', urlOf(4), '--not-before', '2020-01-31T08:00:00Z'];
  expect((await runCommandLine(later, { env })).json.at(-1)).toMatchObject({ accepted: 1 });
});

test('PushStream takes every field of a push, and tells of duplicates', async () => {
  const app = shared();
  const hook = await createPaused(app, 'hook');
  const item = {
    url: urlOf(1),
    callback_headers: 'X-One:1',
    queue_timeout: 5,
    metadata: '{"order":7}',
    delay: 3_600,
    priority: 9,
    unique: true,
    unique_for: 3_600,
    batch: 'monday',
    parameters: { max_age: 60 },
  };
  const later = new Date(Date.now() + DAY_MS).toISOString();
  const other = { url: urlOf(2), unique_key: 'two', not_before: later, batch: 'monday' };
  const [first, second] = await pushByStream(app, 'hook', [
    [fromJson(PushItemSchema, item), fromJson(PushItemSchema, other)],
    [fromJson(PushItemSchema, { ...other, url: urlOf(3) }), fromJson(PushItemSchema, item)],
  ]);
  const [one, two] = first?.results ?? [];
  expect(second?.results).toMatchObject([
    { rid: two?.rid, duplicate: true },
    { rid: one?.rid, duplicate: true },
  ]);
  const { jobs } = (await app.rest('GET', `${hook.path}/jobs`)).json;
  expect(jobs).toMatchObject([
    { rid: one?.rid, url: urlOf(1), metadata: '{"order":7}', priority: 9, batch: 'monday' },
    { rid: two?.rid, url: urlOf(2), not_before: later, priority: 5, batch: 'monday' },
  ]);
  const [{ not_before: start, queue_deadline: deadline }] = jobs;
  // Each is rounded when it is converted to the machine's clock.
  expect(Math.abs(Date.parse(deadline) - Date.parse(start) - 300_000)).toBeLessThanOrEqual(1);
  const batch = await app.rest('GET', `${hook.path}/batches/monday`);
  expect(batch.json).toMatchObject({ accepted: 2, waiting: 2, scheduled: 2 });
});

test('a time that no calendar has is refused as any other wrong one', async () => {
  const app = shared();
  await createPaused(app, 'hook');
  const notBefore = { seconds: 10n ** 16n, nanos: 0 };
  const items = [
    create(PushItemSchema, { url: urlOf(1), notBefore }),
    create(PushItemSchema, { url: urlOf(2) }),
  ];
  const [response] = await pushByStream(app, 'hook', [items]);
  expect(response?.results.map(({ error }) => error?.field)).toEqual(['not_before', undefined]);
});
