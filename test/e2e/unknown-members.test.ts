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
  expect(await app().rest('POST', path, { name: 'lenient', concurency: 3 })).toMatchObject({
    status: 200,
  });
  const item = { url: 'http://127.0.0.1:9/', priorty: 9, parameters: { post_type: 'json' } };
  const reply = await app().rest('POST', `${path}/lenient/push_batch`, { items: [item] });
  expect(reply).toMatchObject({ status: 200, json: { results: [{ rid: expect.any(String) }] } });
});
