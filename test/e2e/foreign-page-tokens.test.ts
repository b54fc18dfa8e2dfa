import { expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';

const CB: Readonly<Record<string, number | undefined>> = { store: 500, hook: 500 };

/** More than one part of an action. */
const COUNT = 250;

/** The messages of an action. */
async function act(app: TestApp, token: string, name: string, body: object) {
  const { status, text } = await app.rest('POST', `/crawler/${token}/${name}/act`, body);
  expect(status, text).toBe(200);
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { matched: number; done: number; next_page_token: string });
}

test('a page token of another account selects nothing of that account', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: { status: 500 } });
  await using app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1h' } });
  const made = await app.rest(
    'POST',
    '/accounts',
    { name: 'other' },
    { authorization: `Bearer ${ADMIN}` },
  );
  const other: string = made.json.normal_token;
  const counts = async (token: string) => {
    const found: Record<string, unknown> = {};
    for (const name of ['queue', 'store', 'hook']) {
      const { json } = await app.rest('GET', `/crawler/${token}/${name}`);
      // The monitoring continues.
      found[name] = { ...json.activity, last_probe_at: undefined };
    }
    const { json } = await app.rest('GET', `/storage/total_count?token=${token}`);
    return { ...found, stored: json.totalCount };
  };

  // Both accounts have crawlers of the same names; the other one's have fewer URLs.
  const lengths = new Map([
    [NORMAL, COUNT],
    [other, 3],
  ]);
  for (const [token, count] of lengths) {
    for (const [name, settings] of Object.entries({
      queue: {},
      store: { max_retries: 0 },
      hook: { max_retries: 0, callback_url: receiver.url },
    })) {
      const path = `/crawler/${token}`;
      const crawler = await app.rest('POST', path, { name, concurrency: 50, ...settings });
      expect(crawler.status, crawler.text).toBe(200);
      if (name !== 'store') await app.rest('POST', `${path}/${name}/pause`);
      const items = Array.from({ length: count }, (_, n) => ({
        url: `${site.url}/status/500?${n}`,
      }));
      const pushed = await app.rest('POST', `${path}/${name}/push_batch`, { items });
      expect(pushed.status, pushed.text).toBe(200);
      if (name === 'hook') await app.rest('POST', `${path}/${name}/unpause`);
    }
  }
  await eventually(async () => {
    for (const [token, count] of lengths) {
      expect(await counts(token)).toMatchObject({ stored: count, hook: { failed: count } });
      const { json } = await app.rest('GET', `/crawler/${token}/hook/deliveries?page_size=3`);
      expect(json.deliveries).toHaveLength(3);
    }
  });

  // What is pushed again waits, so that nothing changes by itself.
  for (const token of lengths.keys()) await app.rest('POST', `/crawler/${token}/store/pause`);
  const actions = [
    { name: 'queue', action: 'remove_jobs', list: 'jobs' },
    { name: 'store', action: 'remove_results', list: 'results' },
    { name: 'hook', action: 'replay', list: 'deliveries' },
    { name: 'store', action: 'push_again', list: undefined },
  ];
  const tokens: string[] = [];
  for (const { name, action } of actions) {
    // The token of an estimate has the order of lists, that of pushing again its own.
    const estimate = action !== 'push_again';
    const [first] = await act(app, NORMAL, name, {
      action,
      estimate,
      filter: { cb_status: CB[name] },
    });
    tokens.push(first?.next_page_token ?? '');
  }
  expect(tokens).not.toContain('');

  const before = await counts(NORMAL);
  for (const [at, { name, action, list }] of actions.entries()) {
    const page_token = tokens[at];
    const filter = { cb_status: CB[name] };
    if (list !== undefined) {
      const path = `/crawler/${other}/${name}/${list}`;
      const listed = await app.rest('GET', `${path}?page_token=${page_token}`);
      expect(listed.status, listed.text).toBe(200);
      expect((listed.json[list] ?? []).length, action).toBeLessThanOrEqual(3);
    }
    const last = (await act(app, other, name, { action, page_token, filter })).at(-1);
    expect(last?.matched, action).toBeLessThanOrEqual(3);
  }
  expect(await counts(NORMAL)).toEqual(before);
  expect(await counts(other)).toMatchObject({ queue: { pushed: 3 }, hook: { pushed: 3 } });
});
