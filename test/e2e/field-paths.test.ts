import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AccountService } from '../../gen/queuedcrawler/v1/account_service_pb.ts';
import { ActivityService } from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { describeFailure } from '../../src/client/call-failure.ts';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';

let app: TestApp;

beforeAll(async () => {
  app = await startApp();
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'paths' });
});

afterAll(() => app[Symbol.asyncDispose]());

const headers = { authorization: `Bearer ${NORMAL}` };
const transport = () => createGrpcTransport({ baseUrl: app.url });

/** The reason and the field that a call is refused with. */
async function refusalOf(call: Promise<unknown>) {
  const { reason, field } = await call.then(
    () => ({ reason: 'none', field: undefined }),
    (error: unknown) => describeFailure(error),
  );
  return [reason, field];
}

test('a crawl parameter is named with its path in the message', async () => {
  const { push, crawl } = createClient(PushService, transport());
  const parameters = { maxAge: 0 };
  const url = 'http://127.0.0.1:9/';
  const expected = ['invalid_max_age', 'parameters.max_age'];
  expect(await refusalOf(push({ crawler: 'paths', url, parameters }, { headers }))).toEqual(
    expected,
  );
  expect(await refusalOf(crawl({ url, parameters }, { headers }))).toEqual(expected);
  const other = push({ crawler: 'paths', url, priority: 10 }, { headers });
  expect(await refusalOf(other)).toEqual(['invalid_priority', 'priority']);
});

test('over REST it is named as the query has it', async () => {
  const query = `token=${NORMAL}&crawler=paths&callback=true&url=http://127.0.0.1:9/&max_age=0`;
  const { json } = await app.rest('GET', `/?${query}`);
  expect(json).toMatchObject({ code: 'invalid_max_age', field: 'max_age' });
});

test('a condition of a filter is named with its path', async () => {
  const { listResults } = createClient(ActivityService, transport());
  const listed = (filter: object) => refusalOf(listResults({ name: 'paths', filter }, { headers }));
  const range = { from: { seconds: 2n }, to: { seconds: 1n } };
  expect(await listed(range)).toEqual(['invalid_from', 'filter.from']);
  expect(await listed({ urlContains: 'x'.repeat(1_001) })).toEqual([
    'invalid_url_contains',
    'filter.url_contains',
  ]);
});

test('PushAgain names its field crawler', async () => {
  const { pushAgain } = createClient(PushService, transport());
  const first = (crawler: string) => {
    const stream = pushAgain({ crawler, reason: 'timeout' }, { headers });
    return refusalOf(stream[Symbol.asyncIterator]().next());
  };
  expect(await first('')).toEqual(['missing_crawler', 'crawler']);
  expect(await first('none')).toEqual(['crawler_not_found', 'crawler']);
});

test('a call of the operator without a token is told that it is missing', async () => {
  const { listAccounts } = createClient(AccountService, transport());
  expect((await refusalOf(listAccounts({})))[0]).toBe('missing_token');
  expect((await refusalOf(listAccounts({}, { headers })))[0]).toBe('invalid_token');
});

test('FindRid without a rid is told that it is missing', async () => {
  const { findRid } = createClient(ActivityService, transport());
  expect(await refusalOf(findRid({}, { headers }))).toEqual(['missing_rid', 'rid']);
  expect(await refusalOf(findRid({ rid: 'x' }, { headers }))).toEqual(['rid_not_found', 'rid']);
});
