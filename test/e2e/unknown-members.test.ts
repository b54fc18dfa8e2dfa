import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { shareApp } from '../support/shared-app.ts';

const app = shareApp();

test.each([
  [
    'a setting of politeness',
    'PUT',
    { politeness: { max_per_host: 3, dealy_ms: 200 } },
    {
      field: 'politeness',
      code: 'unknown_member',
      error: expect.stringContaining('"dealy_ms"; it has'),
    },
  ],
  [
    'a rule of a host',
    'PUT',
    { politeness: { hosts: [{ pattern: 'a.test', max_per_hots: 1 }] } },
    { field: 'politeness.hosts[0]', code: 'unknown_member' },
  ],
])('an unknown member of %s is refused, and nothing changes', async (_, method, body, error) => {
  const path = `/crawler/${NORMAL}`;
  const politeness = { max_per_host: 3, delay_ms: 50 };
  await app().rest('POST', path, { name: 'polite', politeness });
  expect(await app().rest(method, `${path}/polite`, body)).toMatchObject({
    status: 422,
    json: error,
  });
  const { json } = await app().rest('GET', `${path}/polite`);
  expect(json).toMatchObject({ politeness });
});

test('an unknown condition of a filter is refused, and nothing is removed', async () => {
  const path = `/crawler/${NORMAL}`;
  await app().rest('POST', path, { name: 'filtered' });
  const url = encodeURIComponent('http://127.0.0.1:9/');
  const later = `token=${NORMAL}&crawler=filtered&callback=true&delay=3600&url=${url}`;
  await app().rest('GET', `/?${later}`);
  const reply = await app().rest('POST', `${path}/filtered/act`, {
    action: 'remove_jobs',
    filter: { reasn: 'timeout' },
  });
  expect(reply).toMatchObject({ status: 422, json: { code: 'unknown_member', field: 'filter' } });
  const { json } = await app().rest('GET', `${path}/filtered/jobs?state=scheduled`);
  expect(json).toMatchObject({ jobs: [{}] });
});

test.each(['filter.hosst=a.test', 'filter[host]=a.test', 'filter.urlContains=a', 'filter=a.test'])(
  'the unknown condition %s of a filter in a query is refused, and nothing is removed',
  async (condition) => {
    const path = `/crawler/${NORMAL}/queried`;
    await app().rest('POST', `/crawler/${NORMAL}`, { name: 'queried' });
    const url = encodeURIComponent('http://127.0.0.1:9/');
    const later = `token=${NORMAL}&crawler=queried&callback=true&delay=3600&url=${url}`;
    await app().rest('GET', `/?${later}`);
    const refused = { status: 422, json: { code: 'unknown_member', field: 'filter' } };
    const removal = `${path}/act?action=remove_jobs&${condition}`;
    expect(await app().rest('POST', removal)).toMatchObject(refused);
    expect(await app().rest('GET', `${path}/jobs?${condition}`)).toMatchObject(refused);
    const { json } = await app().rest('GET', `${path}/jobs?state=scheduled&unknown=1`);
    expect(json.jobs.length).toBeGreaterThan(0);
  },
);

test('unknown members of the body, of an item and of crawl parameters are ignored', async () => {
  const path = `/crawler/${NORMAL}`;
  expect(await app().rest('POST', path, { name: 'lenient', team: 'search' })).toMatchObject({
    status: 200,
  });
  const parameters = { post_type: 'json', page_wat: 1 };
  const item = { url: 'http://127.0.0.1:9/', colour: 'red', parameters };
  const reply = await app().rest('POST', `${path}/lenient/push_batch`, { items: [item] });
  expect(reply).toMatchObject({ status: 200, json: { results: [{ rid: expect.any(String) }] } });
});

test('misspelt and misplaced members of the body and of an item are refused', async () => {
  const path = `/crawler/${NORMAL}`;
  const misspelt = { name: 'misspelt', callback_ur: 'https://hooks.example/' };
  const refusal = await app().rest('POST', path, misspelt);
  expect(refusal).toMatchObject({
    status: 422,
    json: { code: 'unknown_member', field: 'callback_ur' },
  });
  expect(refusal.json.error).toMatch(/ Did you mean callback_url\?$/);
  await app().rest('POST', path, { name: 'misspelt' });
  const url = 'http://127.0.0.1:9/';
  const items = [{ url, priorty: 9 }, { url }, { url, parameters: { batch: 'night' } }];
  const refused = { error: { code: 'unknown_member' } };
  const results = [refused, { rid: expect.any(String) }, refused];
  expect(await app().rest('POST', `${path}/misspelt/push_batch`, { items })).toMatchObject({
    status: 200,
    json: { results },
  });
  const call = await fetch(`${app().url}/queuedcrawler.v1.PushService/PushBatch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${NORMAL}` },
    body: JSON.stringify({ crawler: 'misspelt', items }),
  });
  expect(await call.json()).toMatchObject({ results });
});

test('a member of the body that belongs into one of its objects is refused, and the reply says where', async () => {
  const path = `/crawler/${NORMAL}`;
  await app().rest('POST', path, { name: 'misplaced' });
  const items = [{ url: 'http://127.0.0.1:9/' }];
  const bodies = [
    ['/misplaced/push_batch', { items, batch: 'night' }, 'batch', 'items'],
    ['/misplaced/push_batch', { items, format: 'json' }, 'format', 'items.parameters'],
    ['', { name: 'polite', delay_ms: 100 }, 'delay_ms', 'politeness'],
    ['', { name: 'bulk', maxResults: 10 }, 'maxResults', 'deliver_batch'],
  ] as const;
  for (const [call, body, field, place] of bodies) {
    const { status, json } = await app().rest('POST', `${path}${call}`, body);
    expect([status, json.code, json.field]).toEqual([422, 'unknown_member', field]);
    expect(json.error).toMatch(new RegExp(` It belongs into ${place}\\.$`));
  }
  const call = await fetch(`${app().url}/queuedcrawler.v1.PushService/PushBatch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${NORMAL}` },
    body: JSON.stringify({ crawler: 'misplaced', items, batch: 'night' }),
  });
  expect(await call.text()).toContain('It belongs into items.');
});

test('an unknown condition of a filter in the query is refused, and others are ignored', async () => {
  const path = `/crawler/${NORMAL}/filtered`;
  await app().rest('POST', `/crawler/${NORMAL}`, { name: 'filtered' });
  const reply = await app().rest('GET', `${path}/jobs?filter.reasn=timeout`);
  expect(reply).toMatchObject({ status: 422, json: { code: 'unknown_member', field: 'filter' } });
  expect(reply.json.error).toMatch(/^filter has no member "reasn"; it has .*\breason\b/);
  expect((await app().rest('GET', `${path}/jobs?reasn=timeout&a.b=c`)).status).toBe(200);
});

test('two names of a field with different values are refused, in an item by itself', async () => {
  const path = `/crawler/${NORMAL}`;
  const body = { name: 'names', max_retries: 1, maxRetries: 2 };
  expect(await app().rest('POST', path, body)).toMatchObject({
    status: 422,
    json: { code: 'invalid_max_retries', field: 'max_retries' },
  });
  expect((await app().rest('POST', path, { ...body, maxRetries: 1 })).status).toBe(200);
  const url = 'http://127.0.0.1:9/';
  const items = [{ url, queue_timeout: 1, queueTimeout: 2 }, { url: `${url}\ud800` }, { url }];
  const { json } = await app().rest('POST', `${path}/names/push_batch`, { items });
  expect(json.results).toMatchObject([
    { error: { code: 'invalid_queue_timeout', field: 'queue_timeout' } },
    { error: { code: 'invalid_url', field: 'url' } },
    { rid: expect.stringMatching(/./) },
  ]);
});

test.each([
  [{ politeness: { delay_ms: -5 } }, 'invalid_delay_ms', 'politeness.delay_ms'],
  [
    { politeness: { hosts: [{ pattern: 'a b' }] } },
    'invalid_pattern',
    'politeness.hosts[0].pattern',
  ],
  [{ politeness: { delay_ms: 'x' } }, 'invalid_delay_ms', 'politeness.delay_ms'],
])('the reason of a wrong setting %j has no path, and the field has', async (body, code, field) => {
  const reply = await app().rest('POST', `/crawler/${NORMAL}`, { name: 'reason', ...body });
  expect(reply).toMatchObject({ status: 422, json: { code, field } });
});
