import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import { RequestInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startProcess } from '../support/service-process.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

interface Line {
  readonly msg: string;
  readonly requestId?: string;
}

function lines(app: { readonly log: readonly string[] }): Line[] {
  return app.log.map((line) => JSON.parse(line) as Line);
}

/** The line of one request; it is written when the reply has ended. */
async function lineOf(app: TestApp, requestId: string): Promise<Line> {
  return eventually(() => {
    const found = lines(app).filter(
      (line) => line.msg === 'request' && line.requestId === requestId,
    );
    expect(found).toHaveLength(1);
    return found[0] as Line;
  });
}

const shared = shareApp();

test('a request is one line: route, status, time, account, id; never a path or a query', async () => {
  await using app = await startApp();
  const named = { 'x-request-id': 'my-request.1' };
  const made = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'shop' }, named);
  expect(made.headers.get('x-request-id')).toBe('my-request.1');
  expect(await lineOf(app, 'my-request.1')).toMatchObject({
    level: 30,
    protocol: 'rest',
    method: 'POST',
    route: 'POST /crawler/{token}',
    status: 200,
    account: 'default',
    ms: expect.any(Number),
  });

  const push = await app.rest('GET', `/?token=${NORMAL}&crawler=shop&url=ftp%3A%2F%2Fa.example`);
  const id = push.headers.get('x-request-id') ?? '';
  expect(push.json).toMatchObject({ code: 'invalid_url', request_id: id });
  expect(await lineOf(app, id)).toMatchObject({
    route: 'GET /',
    status: 422,
    code: 'invalid_url',
    account: 'default',
  });

  const nowhere = await app.rest('GET', '/nothing/here?secret=1');
  expect(nowhere.json.request_id).toBe(nowhere.headers.get('x-request-id'));
  expect(await lineOf(app, nowhere.json.request_id)).toMatchObject({
    route: 'no route',
    status: 404,
    code: 'not_found',
  });
  expect(app.log.join('')).not.toContain('nothing/here');
});

test('an id that could not be told from others, or that breaks lines, is replaced', async () => {
  const app = shared();
  for (const given of ['with space', 'x'.repeat(129), '"quoted"']) {
    const reply = await app.rest('GET', '/healthz', undefined, { 'x-request-id': given });
    expect(reply.headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/);
  }
});

test('refusals of the operator, of agents and of the console have their code', async () => {
  const app = shared();
  const admin = { authorization: `Bearer ${ADMIN}` };
  const wrong = { authorization: 'Bearer wrong-token-of-nobody' };
  for (const [id, verb, path, headers, body, status, code] of [
    ['level', 'PUT', '/log-level/loud', admin, undefined, 422, 'invalid_level'],
    ['verb', 'DELETE', '/log-level', admin, undefined, 405, 'method_not_allowed'],
    ['backup', 'GET', '/backup', wrong, undefined, 401, 'invalid_token'],
    ['agent', 'POST', '/mcp', wrong, {}, 401, 'invalid_token'],
    ['console', 'POST', '/console/session', {}, { token: 'nobody' }, 401, 'invalid_token'],
  ] as const) {
    await app.rest(verb, path, body, { ...headers, 'x-request-id': `refused-${id}` });
    const route = id === 'level' ? '/log-level' : path;
    expect(await lineOf(app, `refused-${id}`)).toMatchObject({ route, status, code });
  }
});

test('RPC errors name their request, and their line has the reason', async () => {
  const app = shared();
  const client = createClient(CrawlerService, createGrpcTransport({ baseUrl: app.url }));
  const failed = await client
    .getCrawler({ token: NORMAL, name: 'none' }, { headers: { 'x-request-id': 'rpc-1' } })
    .catch((error: unknown) => ConnectError.from(error));
  if (!(failed instanceof ConnectError)) throw new Error('it did not fail');
  expect(failed.code).toBe(Code.NotFound);
  expect(failed.findDetails(RequestInfoSchema)).toMatchObject([{ requestId: 'rpc-1' }]);
  expect(failed.metadata.get('x-request-id')).toBe('rpc-1');
  expect(await lineOf(app, 'rpc-1')).toMatchObject({
    protocol: 'grpc',
    route: 'queuedcrawler.v1.CrawlerService/GetCrawler',
    code: 'crawler_not_found',
    account: 'default',
  });
});

test('LOG_REQUESTS=failed leaves out what went well', async () => {
  await using app = await startApp({ env: { LOG_REQUESTS: 'failed' } });
  await app.rest('GET', `/crawler/${NORMAL}/stats`);
  await app.rest('GET', '/crawler/wrong-token-of-nobody/stats');
  await eventually(() => expect(lines(app).some(({ msg }) => msg === 'request')).toBe(true));
  expect(lines(app).filter(({ msg }) => msg === 'request')).toMatchObject([
    { status: 401, code: 'invalid_token' },
  ]);
});

test('the admin token changes the level while the service runs; each change of a job is then a line', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using service = await startProcess({ DATA_DIR: folder.path, LOG_LEVEL: 'error' });
  const level = (method: string, path: string, token: string) =>
    fetch(`${service.url}/log-level${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
    });
  expect((await level('PUT', '/debug', NORMAL)).status).toBe(401);
  expect((await level('PUT', '/loud', ADMIN)).status).toBe(422);
  expect(await (await level('GET', '', ADMIN)).json()).toEqual({ level: 'error' });
  expect(await (await level('PUT', '/debug', ADMIN)).json()).toEqual({ level: 'debug' });

  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
  const url = encodeURIComponent(`${site.url}/page/1`);
  const { json } = await service.rest('GET', `/?token=${NORMAL}&crawler=store&url=${url}`);
  const linesOfJob = () =>
    service.output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as { rid?: string; msg: string; crawler?: string })
      .filter(({ rid }) => rid === json.rid);
  await eventually(() => expect(linesOfJob()).toHaveLength(3));
  // The crawl starts while its push is written.
  const messages = linesOfJob().map(({ msg }) => msg);
  expect(messages.slice(0, 2).toSorted()).toEqual(['a crawl started', 'a job was pushed']);
  expect(messages.at(2)).toBe('a crawl ended');
  const [pushed] = linesOfJob();
  expect(linesOfJob().every(({ crawler }) => crawler === pushed?.crawler)).toBe(true);

  await level('PUT', '/error', ADMIN);
  await eventually(() => {
    expect(service.output).toMatch(/"before":"debug".*"the log level was changed"/);
  });
  const before = service.output;
  await service.rest('GET', `/crawler/${NORMAL}/stats`);
  expect(service.output).toBe(before);
});

test('lines are JSON unless they are asked for in a form for people', async () => {
  await using folder = await temporaryFolder();
  const env = { DATA_DIR: folder.path, LOG_LEVEL: 'info', LOG_FORMAT: 'pretty' };
  await using service = await startProcess(env);
  await service.rest('GET', `/crawler/${NORMAL}/stats`);
  await eventually(() => expect(service.output).toMatch(/INFO.*: request\n/));
  expect(service.output).not.toContain('{"level"');
  expect(service.output).toContain('Queued crawler: ');
  expect(service.errors).toBe('');
});

test('with a log of JSON standard output has nothing else; the welcome is on standard error', async () => {
  await using folder = await temporaryFolder();
  const env = { DATA_DIR: folder.path, LOG_LEVEL: 'info', NORMAL_TOKEN: '', JAVASCRIPT_TOKEN: '' };
  await using service = await startProcess(env);
  await eventually(() =>
    expect(service.errors).toMatch(/Normal token:\s+\S{32}[\s\S]*\/storage\?/),
  );
  await service.terminate();
  const printed = service.output.split('\n').filter((line) => line !== '');
  const messages = printed.map((line) => (JSON.parse(line) as Line).msg);
  expect(messages).toEqual(expect.arrayContaining(['started', 'stopped']));
});
