import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';

const PROXIES = JSON.stringify({ DE: 'http://127.0.0.1:9', FR: 'http://127.0.0.1:9' });

test.each([
  ['country=US', 'country', /DE, FR/],
  ['country=D1', 'country', /two-letter/],
  ['tor_network=true', 'tor_network', /Tor/],
  ['scraper=unknown', 'scraper', /generic-extractor, email-extractor/],
  ['screenshot=true', 'screenshot', /JavaScript token/],
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
