import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  ADMIN,
  JAVASCRIPT,
  NORMAL,
  type RestReply,
  startApp,
  type TestApp,
} from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { createOpenApiCheck, type OpenApiCheck } from '../support/openapi-check.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type Site, startSite } from '../support/site.ts';

let app: TestApp;
let site: Site;
let receiver: Receiver;
let check: OpenApiCheck;
/** A page at the webhook of `hook`, and one in the storage of `kept`. */
const rids = { delivered: '', stored: '', queued: '', async: '' };

beforeAll(async () => {
  site = await startSite({
    routes: { '/sitemap.txt': (_, response) => response.end(`${site.url}/page/1`) },
  });
  receiver = await startReceiver();
  app = await startApp();
  check = createOpenApiCheck((await app.rest('GET', '/openapi.json')).json);
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url });
  const kept = await createCrawler(app, 'kept');
  const paused = await createCrawler(app, 'paused');
  await paused.post('pause');
  rids.delivered = await hook.push(`${site.url}/page/1`);
  rids.stored = await kept.push(`${site.url}/status/500`);
  rids.queued = await paused.push(`${site.url}/page/2`);
  await receiver.until(1);
  await kept.stored(await kept.push(`${site.url}/page/3`));
  rids.stored = await kept.push(`${site.url}/page/4?get=1`, '&get_headers=true');
  await kept.stored(rids.stored);
  const later = await app.rest('GET', `/?token=${NORMAL}&async=true&url=${site.url}/hang`);
  rids.async = later.json.rid;
  await app.rest('POST', '/accounts', { name: 'other' }, { authorization: `Bearer ${ADMIN}` });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

/** What fills the path, the query and the body of a call. */
interface Sent {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Default the Normal token, or the admin token for accounts. */
  readonly token?: string;
}

async function call(operationId: string, sent: Sent): Promise<RestReply> {
  const found = check.operations.get(operationId);
  if (found === undefined) throw new Error(`there is no operation ${operationId}`);
  const isAdmin = /^\/(accounts|installation)\b/.test(found.path);
  const token = sent.token ?? (isAdmin ? ADMIN : NORMAL);
  const path = found.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    name === 'token' ? token : (sent.path?.[name] ?? `no-${name}`),
  );
  const query = new URLSearchParams(sent.query);
  if (!isAdmin && !found.path.includes('{token}')) query.set('token', token);
  const headers = isAdmin ? { authorization: `Bearer ${token}` } : {};
  const target = `${path}?${query.toString()}`;
  const isStream = 'application/x-ndjson' in (found.operation.responses['200']?.content ?? {});
  if (isStream && found.verb === 'GET') return firstLine(target);
  const reply = await app.rest(found.verb, target, sent.body, headers);
  if (!isStream || reply.status !== 200) return reply;
  const [text = ''] = reply.text.split('\n');
  return { ...reply, text, json: JSON.parse(text) };
}

/** The first message of a stream; an error has one line, too. */
async function firstLine(target: string): Promise<RestReply> {
  const closing = new AbortController();
  const response = await fetch(app.url + target, { signal: closing.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const { value = '' } = (await reader?.read()) ?? {};
  closing.abort();
  await reader?.closed.catch(() => undefined);
  const [text = ''] = value.split('\n');
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

const url = (path: string): string => site.url + path;
const name = (of: string) => ({ path: { name: of } });

/** One call of each operation that succeeds, those that remove last; several where replies differ. */
const calls: readonly (readonly [string, () => Sent])[] = [
  ['PushOrCrawl', () => ({ query: { url: url('/page/1') } })],
  ['PushOrCrawl', () => ({ query: { url: url('/page/1'), format: 'json', get_headers: 'true' } })],
  ['PushOrCrawl', () => ({ query: { url: url('/status/500'), format: 'json', store: 'true' } })],
  ['PushOrCrawl', () => ({ query: { url: url('/page/1'), format: 'md' } })],
  ['PushOrCrawl', () => ({ query: { url: url('/page/1'), autoparse: 'true' } })],
  ['PushOrCrawl', () => ({ query: { url: url('/page/1'), crawler: 'paused' } })],
  ['PushOrCrawlByPost', () => ({ query: { url: url('/echo') }, body: { a: 1 } })],
  ['PushOrCrawlByPut', () => ({ query: { url: url('/echo'), crawler: 'paused' }, body: 'x' })],
  ['CreateAccount', () => ({ body: { name: 'third', limits: { crawlers: 3 } } })],
  ['ListAccounts', () => ({ query: { page_size: '2' } })],
  ['GetAccount', () => name('third')],
  ['UpdateAccount', () => ({ ...name('third'), body: { email: 'third@a.example' } })],
  ['RotateToken', () => ({ ...name('third'), body: { token_type: 'normal' } })],
  ['DeleteAccount', () => name('third')],
  ['CreateCrawler', () => ({ body: { name: 'new', callback_url: receiver.url } })],
  ['CreateCrawler', () => ({ body: { name: 'new', callback_url: receiver.url } })],
  ['ListCrawlers', () => ({ query: { page_size: '2' } })],
  ['ListCrawlers', () => ({ query: { with_activity: 'true' } })],
  ['GetCrawler', () => name('hook')],
  ['UpdateCrawler', () => ({ ...name('new'), body: { concurrency: 3 } })],
  ['GetStats', () => ({})],
  ['GetStats', () => ({ query: { history_from: '2020-01-01', history_to: '2020-01-02' } })],
  ['GetTimeline', () => ({ query: { crawlers: 'hook', range: 'day' } })],
  ['GetTimeline', () => ({ query: { crawlers: 'hook', range: 'quarter' } })],
  ['GetActivity', () => ({})],
  ['ListAuditRecords', () => ({})],
  [
    'PushBatch',
    () => ({
      path: { crawler: 'paused' },
      body: {
        items: [{ url: url('/page/5'), batch: 'list' }, { url: 'nonsense' }],
        request_id: 'one',
      },
    }),
  ],
  ['ListJobs', () => name('paused')],
  ['Search', () => ({ query: { query: 'page' } })],
  ['ListBatches', () => name('paused')],
  ['GetBatch', () => ({ path: { name: 'paused', batch: 'list' } })],
  ['GetBatchResults', () => ({ path: { crawler: 'paused', batch: 'list' } })],
  ['WatchBatch', () => ({ path: { name: 'paused', batch: 'list' } })],
  ['CloseBatch', () => ({ path: { name: 'paused', batch: 'list' } })],
  ['ReadSitemap', () => ({ query: { url: url('/sitemap.txt') } })],
  ['PushAgain', () => ({ path: { crawler: 'kept' }, body: { reason: 'timeout' } })],
  [
    'ActOnMatches',
    () => ({ path: { name: 'kept' }, body: { action: 'push_again', estimate: true } }),
  ],
  ['CancelBatch', () => ({ path: { name: 'paused', batch: 'list' } })],
  ['ListHosts', () => name('paused')],
  ['ListHosts', () => name('kept')],
  ['PauseHost', () => ({ ...name('paused'), query: { host: 'a.example' } })],
  ['UnpauseHost', () => ({ ...name('paused'), query: { host: 'a.example' } })],
  ['PurgeHost', () => ({ ...name('paused'), query: { host: 'a.example' } })],
  ['FindJob', () => ({ path: { name: 'paused', rid: rids.queued } })],
  ['FindJob', () => ({ path: { name: 'paused', rid: rids.stored } })],
  ['FindRid', () => ({ path: { rid: rids.stored } })],
  ['FindRid', () => ({ path: { rid: rids.queued } })],
  ['FindRid', () => ({ path: { rid: rids.delivered } })],
  ['ListDeliveries', () => name('hook')],
  ['GetDelivery', () => ({ path: { name: 'hook', rid: rids.delivered } })],
  ['ListFailures', () => name('kept')],
  ['ListResults', () => name('kept')],
  ['ListResultsByGet', () => ({})],
  ['ReplayDeliveries', () => ({ ...name('hook'), body: { rid: rids.delivered } })],
  ['RotateWebhookSecret', () => name('hook')],
  ['TestDelivery', () => name('hook')],
  ['ListAsyncJobs', () => ({})],
  ['FindAsyncJob', () => ({ path: { rid: rids.async } })],
  ['FindAsyncJob', () => ({ path: { rid: rids.stored } })],
  ['DeleteAsyncJob', () => ({ query: { rid: rids.async } })],
  ['PurgeAsyncJobs', () => ({})],
  ['GetResult', () => ({ query: { rid: rids.stored } })],
  ['GetResult', () => ({ query: { rid: rids.stored, format: 'json' } })],
  ['ListRids', () => ({})],
  ['ListRids', () => ({ query: { scroll: 'true', limit: '1' } })],
  ['CountResults', () => ({})],
  ['BulkGetResults', () => ({ body: { rids: [rids.stored] } })],
  ['BulkDeleteResults', () => ({ body: { rids: [rids.stored, 'a'.repeat(24)] } })],
  ['DeleteResult', () => ({ query: { rid: 'a'.repeat(24) } })],
  ['Scrape', () => ({ query: { url: url('/page/1') } })],
  ['FindLeads', () => ({ query: { domain: site.host } })],
  ['GetScreenshot', () => ({ query: { url: url('/page/1') } })],
  ['GetDocument', () => ({})],
  ['GetLiveness', () => ({})],
  ['GetReadiness', () => ({})],
  ['GetMetrics', () => ({})],
  ['StreamResults', () => ({ query: { follow: 'true' } })],
  [
    'CreateProxyPool',
    () => ({ body: { name: 'pool', proxies: ['http://a:b@127.0.0.1:3128'], countries: 'DE' } }),
  ],
  ['ListProxyPools', () => ({})],
  ['GetProxyPool', () => name('pool')],
  ['UpdateProxyPool', () => ({ ...name('pool'), body: { countries: '' } })],
  ['DeleteProxyPool', () => name('pool')],
  ['GetInstallation', () => ({})],
  ['GetSetup', () => ({})],
  ['ListProxies', () => ({})],
  ['WatchActivity', () => ({})],
  ['WatchCrawlers', () => ({})],
  ['WatchCrawler', () => name('hook')],
  ['UnpauseCrawler', () => name('new')],
  ['PauseCrawler', () => name('new')],
  ['DeleteJob', () => ({ ...name('paused'), query: { rid: rids.queued } })],
  ['PurgeCrawler', () => name('paused')],
  ['DeleteCrawler', () => name('new')],
];

/** Bytes of bodies that calls refuse, where more than 64 KiB are taken. */
const TOO_LONG: Readonly<Record<string, number>> = {
  PushBatch: 11_000_000,
  CreateProxyPool: 400_000,
};

// Needs a token that a stream has sent.
const elsewhere = ['AcknowledgeResults'];

test('every operation answers as the document says', async () => {
  expect(new Set([...calls.map(([operationId]) => operationId), ...elsewhere])).toEqual(
    new Set(check.operations.keys()),
  );
  for (const [operationId, sent] of calls) {
    const reply = await call(operationId, sent());
    const faults = check.faults(operationId, reply);
    const what = [operationId, reply.status, reply.status === 200 ? '' : reply.text, faults];
    expect(what).toEqual([operationId, 200, '', []]);
  }
});

test('every operation refuses as the document says', async () => {
  const open = new Set(['GetDocument', 'GetLiveness', 'GetReadiness', 'GetMetrics']);
  for (const [operationId, { verb, path, operation }] of check.operations) {
    if (open.has(operationId)) continue;
    const refuses = async (status: number, sent: Sent) => {
      const reply = await call(operationId, sent);
      const faults = check.faults(operationId, reply);
      const code = typeof reply.json?.code === 'string' ? '' : 'no code';
      expect([operationId, reply.status, faults, code]).toEqual([operationId, status, [], '']);
    };
    const query = { url: url('/page/1'), domain: site.host };
    const ofCrawl = ['FindLeads', 'GetScreenshot'].includes(operationId) ? { query } : {};
    const known = { path: { name: 'kept', crawler: 'kept', rid: rids.stored }, ...ofCrawl };
    await refuses(401, { ...known, token: 'a-token-of-nobody' });
    // FindJob answers NOT_QUEUED where there is no crawler.
    if (path.includes('{name}') && operationId !== 'FindJob')
      await refuses(404, { query: { rid: 'a'.repeat(24) }, ...bodyFor(operation) });
    if (path.includes('/crawler/{token}/{')) {
      await refuses(403, {
        ...known,
        token: JAVASCRIPT,
        query: { rid: rids.stored },
        ...bodyFor(operation),
      });
    }
    if (operation.parameters.some((each) => each.name === 'page_size')) {
      await refuses(422, { ...known, query: { page_size: 'many' } });
    }
    if ('400' in operation.responses) await refuses(400, { ...known, body: '{"a":' });
    if (verb === 'POST' && '400' in operation.responses) {
      await refuses(422, { ...known, body: { no_such_field: 1 } });
      await refuses(413, {
        ...known,
        body: 'x'.repeat(TOO_LONG[operationId] ?? 70_000),
      });
    }
  }
});

/** A body that passes the checks before the crawler is looked up. */
function bodyFor({ operationId }: { readonly operationId: string }): Pick<Sent, 'body'> {
  switch (operationId) {
    case 'PushBatch':
      return { body: { items: [{ url: 'http://a.example/' }] } };
    case 'UpdateCrawler':
      return { body: { concurrency: 2 } };
    case 'UpdateAccount':
      return { body: { email: 'a@a.example' } };
    case 'ReplayDeliveries':
      return { body: { rid: 'a'.repeat(24) } };
    case 'RotateToken':
      return { body: { token_type: 'normal' } };
    default:
      return {};
  }
}

test('the document names the address of the service', async () => {
  const document = async (of: TestApp) => (await of.rest('GET', '/openapi.json')).json;
  expect((await document(app)).servers).toEqual([{ url: app.url }]);
  await using behind = await startApp({ env: { PUBLIC_URL: 'https://crawler.example/' } });
  expect((await document(behind)).servers).toEqual([{ url: 'https://crawler.example' }]);
});

test('every array says what is in it', async () => {
  const bare: string[] = [];
  const look = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const { type, items } = value as { readonly type?: unknown; readonly items?: unknown };
    if ([type].flat().includes('array') && items === undefined) bare.push(path);
    for (const [name, each] of Object.entries(value)) look(each, `${path}/${name}`);
  };
  look((await app.rest('GET', '/openapi.json')).json, '');
  expect(bare).toEqual([]);
});

test('a JSON page, and a body in an unknown encoding, are answered as the document says', async () => {
  const page = await app.rest('GET', `/?token=${NORMAL}&url=${url('/echo')}`);
  expect(page.headers.get('content-type')).toBe('application/json');
  expect([page.json.method, check.faults('PushOrCrawl', page)]).toEqual(['GET', []]);
  const packed = { 'content-encoding': 'br', 'content-type': 'application/json' };
  const refused = await app.rest('POST', `/crawler/${NORMAL}`, '{}', packed);
  expect([refused.status, check.faults('CreateCrawler', refused)]).toEqual([415, []]);
});

test('conflicts and limits are answered as the document says', async () => {
  await using small = await startApp({
    env: { PUSH_RATE_PER_SECOND: '1', CRAWLER_QUEUE_LIMIT: '1' },
  });
  await small.rest('POST', `/crawler/${NORMAL}`, { name: 'one' });
  await small.rest('POST', `/crawler/${NORMAL}/one/pause`);
  const again = await small.rest('POST', `/crawler/${NORMAL}`, { name: 'one', concurrency: 3 });
  expect([again.status, check.faults('CreateCrawler', again)]).toEqual([409, []]);
  const push = () => small.rest('GET', `/?token=${NORMAL}&crawler=one&url=http://a.example/`);
  await eventually(async () => {
    const reply = await push();
    expect(reply.json.code).toBe('crawler_queue_full');
    expect([reply.status, check.faults('PushOrCrawl', reply)]).toEqual([429, []]);
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});
