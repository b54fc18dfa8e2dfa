import { expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';

const PROXIES = JSON.stringify({ DE: 'http://127.0.0.1:9', FR: 'http://127.0.0.1:9' });

const shared = shareApp();

test.each([
  ['country=US', 'country', /DE, FR/],
  ['country=D1', 'country', /two-letter/],
  ['tor_network=true', 'tor_network', /Tor/],
  ['scraper=unknown', 'scraper', /generic-extractor, email-extractor/],
  ['device=watch', 'device', /desktop, tablet, mobile/],
  ['custom_success_codes=x', 'custom_success_codes', /statuses/],
])('%s is refused for a queue and inline alike, naming %s', async (query, field, message) => {
  await using app = await startApp({ env: { PROXIES } });
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'one' });
  const url = encodeURIComponent('http://example.com/');
  for (const queued of ['&crawler=one&callback=true', '']) {
    const { status, json } = await app.rest(
      'GET',
      `/?token=${NORMAL}&url=${url}&${query}${queued}`,
    );
    expect(status).toBe(422);
    expect(json).toMatchObject({ field, error: expect.stringMatching(message) });
  }
});

test('a status that no standard names can count as success', async () => {
  await using site = await startSite();
  const url = encodeURIComponent(`${site.url}/status/999`);
  const path = `/?token=${NORMAL}&format=json&url=${url}`;
  const { json } = await shared().rest('GET', `${path}&custom_success_codes=200,999`);
  expect(json).toMatchObject({ cb_status: 200, original_status: 999 });
});

test('an invalid selector is refused, and so is a push without its crawler and a removal without its rid', async () => {
  const app = shared();
  const url = encodeURIComponent('http://example.com/');
  const refusals = [
    ['GET', `/?token=${JAVASCRIPT}&url=${url}&css_click_selector=%5B%5B`, 'css_click_selector'],
    ['GET', `/?token=${NORMAL}&url=${url}&callback=true`, 'crawler'],
    ['DELETE', `/storage?token=${NORMAL}`, 'rid'],
  ] as const;
  for (const [method, path, field] of refusals) {
    expect(await app.rest(method, path)).toMatchObject({ status: 422, json: { field } });
  }
});

test('a failed crawl says why: inline, in storage and at a webhook', async () => {
  await using receiver = await startReceiver();
  const app = shared();
  const inline = await app.rest(
    'GET',
    `/?token=${NORMAL}&format=json&url=${encodeURIComponent('http://10.0.0.1/')}`,
  );
  expect(inline.json).toMatchObject({ cb_status: 523, failure: 'address_not_allowed' });
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', callback_url: receiver.url });
  const url = encodeURIComponent('http://10.0.0.1/');
  await app.rest('GET', `/?token=${NORMAL}&crawler=hook&callback=true&url=${url}`);
  const [post] = await receiver.until(1);
  expect(post?.headers).toMatchObject({ cb_status: '523', failure: 'address_not_allowed' });
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
  const pushed = await app.rest('GET', `/?token=${NORMAL}&crawler=store&callback=true&url=${url}`);
  await eventually(async () => {
    const stored = await app.rest('GET', `/storage?token=${NORMAL}&rid=${pushed.json.rid}`);
    expect(stored.headers.get('failure')).toBe('address_not_allowed');
  });
});
