import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/listen.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';
import { startTlsSite } from '../support/tls-site.ts';

/** What the API tells of a job. */
async function lifeOf(app: TestApp, rid: string) {
  return (await app.rest('GET', `/find_by_rid/${NORMAL}/${rid}`)).json;
}

const names = (steps: readonly { readonly name: string }[]) => steps.map(({ name }) => name);

const shared = shareApp();

test('a job tells what it waits for, each try with its reason and times, and how to push it again', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'told', { max_retries: 3 });
  await crawler.post('pause');
  const query = '&user_agent=Bot%2F1&format=json&priority=7&metadata={"id":1}';
  const rid = await crawler.push(`${site.url}/flaky/a?fails=1&delay=20`, query);
  const paused = await lifeOf(app, rid);
  expect(paused).toMatchObject({ waits_for: 'user_pause', job: { state: 'waiting' } });
  expect(paused.tries ?? []).toEqual([]);
  await crawler.post('unpause');

  const retrying = await eventually(async () => {
    const found = await lifeOf(app, rid);
    expect(found.waits_for).toBe('retry');
    return found;
  });
  expect(retrying.waits_until).toEqual(expect.any(String));
  expect(retrying.tries).toMatchObject([{ failure: 'target_unavailable', original_status: 503 }]);
  await crawler.stored(rid);

  const stored = await lifeOf(app, rid);
  expect(stored).toMatchObject({
    waits_for: '',
    result: { cb_status: 200 },
    tries: [{ failure: 'target_unavailable', original_status: 503 }, { original_status: 200 }],
    push: {
      url: `${site.url}/flaky/a?fails=1&delay=20`,
      parameters: { user_agent: 'Bot/1', format: 'json' },
      priority: 7,
      metadata: '{"id":1}',
    },
  });
  expect(stored.tries[1]).not.toHaveProperty('failure');
  expect(Date.parse(stored.tries[1].started_at)).toBeGreaterThan(
    Date.parse(stored.tries[0].started_at),
  );
  expect(Date.parse(stored.pushed_at)).toBe(Date.parse(retrying.pushed_at));

  // The item is what the service takes.
  const again = await app.rest('POST', `${crawler.path}/push_batch`, { items: [stored.push] });
  await crawler.stored(again.json.results[0].rid);
  expect(site.seen.at(-1)?.headers['user-agent']).toBe('Bot/1');
});

test('the times of a slow page are those of its parts, and a failed one names the part that failed', async () => {
  await using site = await startSite({
    routes: {
      '/slow': (_request, response) => {
        setTimeout(() => {
          response.writeHead(200, { 'content-type': 'text/html' }).write('<p>begin</p>');
          setTimeout(() => response.end('<p>end</p>'), 60);
        }, 80);
      },
      '/silent': (_request, response) => {
        setTimeout(() => response.destroy(), 60);
      },
    },
  });
  await using app = await startApp();
  const crawler = await createCrawler(app, 'timed', { max_retries: 0 });
  const slow = await crawler.push(`${site.url}/slow`);
  await crawler.stored(slow);
  const { tries } = await lifeOf(app, slow);
  const steps: { name: string; duration_ms: number }[] = tries[0].steps;
  expect(names(steps).slice(-2)).toEqual(['first_byte', 'body']);
  // The parts of a connection are told once, and there is no look-up of an address. A busy machine hands an open one over late.
  expect(['connect', 'connection', '']).toContain(names(steps).slice(0, -2).join(' '));
  const sum = steps.reduce((all, { duration_ms: ms }) => all + ms, 0);
  expect(tries[0].duration_ms).toBeGreaterThanOrEqual(sum - steps.length);

  const silent = await crawler.push(`${site.url}/silent`);
  await crawler.stored(silent);
  const failed = await lifeOf(app, silent);
  expect(failed.tries).toMatchObject([{ failure: 'connection_failed' }]);
  expect(names(failed.tries[0].steps).at(-1)).toBe('first_byte');
  expect(failed.push).toEqual({ url: `${site.url}/silent` });
});

test('a try that TLS or the system ended tells the code', async () => {
  await using site = await startTlsSite();
  const crawler = await createCrawler(shared(), 'coded', { max_retries: 0 });
  const unknown = await crawler.push(`${site.url}/`);
  const refused = await crawler.push(`http://127.0.0.1:${await freePort()}/`);
  await crawler.stored(unknown);
  await crawler.stored(refused);
  expect((await lifeOf(shared(), unknown)).tries).toMatchObject([
    { failure: 'tls_failed', detail: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
  ]);
  expect((await lifeOf(shared(), refused)).tries).toMatchObject([
    { failure: 'connection_failed', detail: 'ECONNREFUSED' },
  ]);
});

test('a delivery tells its headers without secrets, and what the callback URL answered', async () => {
  await using site = await startSite();
  const body = `<h1>database is down</h1>${'é'.repeat(3_000)}`;
  await using receiver = await startReceiver({ answer: { status: 500, body } });
  await using app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1s,1h' } });
  const crawler = await createCrawler(app, 'hooked', { callback_url: receiver.url });
  const rid = await crawler.push(
    `${site.url}/page/1`,
    `&callback_headers=${encodeURIComponent('X-Job:42|X-Api-Key:hush')}`,
  );
  const found = await eventually(async () => {
    const each = await lifeOf(app, rid);
    expect(each.delivery?.attempts).toHaveLength(2);
    return each;
  });
  expect(found.waits_for).toBe('delivery');
  for (const { answer } of found.delivery.attempts) {
    expect(answer).toMatch(/^<h1>database is down<\/h1>é+$/);
    expect(Buffer.byteLength(answer)).toBeLessThanOrEqual(2_048);
  }
  const [post] = receiver.byRid(rid);
  const shown = found.sent_headers as { name: string; value: string }[];
  for (const { name, value } of shown) {
    const sent = post?.headers[name.toLowerCase()];
    expect({ name, sent: sent !== undefined }).toEqual({ name, sent: true });
    if (value !== '(hidden)' && name !== 'webhook-timestamp') expect(sent).toBe(value);
  }
  const hidden = shown.filter(({ value }) => value === '(hidden)').map(({ name }) => name);
  expect(hidden).toEqual(['X-Api-Key', 'webhook-signature']);

  // Lists have the attempts, without the answers.
  const { json } = await app.rest('GET', `${crawler.path}/deliveries`);
  expect(json.deliveries[0].attempts[0]).not.toHaveProperty('answer');
  receiver.answer({ status: 200 });
  await crawler.post('replay', { rid });
  await eventually(async () => {
    const { delivery, waits_for: waitsFor } = await lifeOf(app, rid);
    expect({ state: delivery.state, waitsFor }).toEqual({ state: 'delivered', waitsFor: '' });
  });
});

test('a request with a body is told while it can be pushed again, and not once it has ended well', async () => {
  await using site = await startSite();
  const app = shared();
  const crawler = await createCrawler(app, 'posts', { max_retries: 0 });
  const post = async (path: string) => {
    const item = { url: site.url + path, method: 'POST', body: btoa('a=1') };
    const reply = await app.rest('POST', `${crawler.path}/push_batch`, { items: [item] });
    const { rid } = reply.json.results[0];
    await crawler.stored(rid);
    return lifeOf(app, rid);
  };
  expect((await post('/status/500')).push).toMatchObject({ method: 'POST', body: btoa('a=1') });
  expect(await post('/echo')).not.toHaveProperty('push');
});
