import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startSite } from '../support/site.ts';

test('a page over the size limit keeps the status, the headers and the address of the site', async () => {
  await using site = await startSite({
    routes: {
      '/large': (_request, response) =>
        void response
          .writeHead(203, { 'content-type': 'text/html', 'x-shop': 'yes' })
          .end('x'.repeat(20_000)),
      // Each of these bytes is two in UTF-8.
      '/grows': (_request, response) =>
        void response
          .writeHead(404, { 'content-type': 'text/html; charset=iso-8859-1' })
          .end(Buffer.alloc(9_000, 0xe4)),
    },
  });
  await using app = await startApp({ env: { MAX_BODY_BYTES: '10000' } });
  const large = `${site.url}/large`;
  const pushed = `${site.url}/redirect-to?url=${encodeURIComponent(large)}`;
  const inline = await app.rest(
    'GET',
    `/?token=${NORMAL}&format=json&get_headers=true&url=${encodeURIComponent(pushed)}`,
  );
  expect(inline.json).toMatchObject({
    original_status: 203,
    cb_status: 523,
    failure: 'body_too_large',
    url: large,
    pushed_url: pushed,
    original_x_shop: 'yes',
    body: '',
  });
  const crawler = await createCrawler(app, 'kept');
  const stored = await crawler.stored(await crawler.push(large));
  expect(stored.json).toMatchObject({ original_status: 203, cb_status: 523 });
  const grows = await app.rest('GET', `/?token=${NORMAL}&format=json&url=${site.url}/grows`);
  expect(grows.json).toMatchObject({ original_status: 404, failure: 'body_too_large' });
});

test('so does one whose body is not what its encoding says', async () => {
  await using site = await startSite({
    routes: {
      '/no-gzip': (_request, response) =>
        void response
          .writeHead(201, { 'content-type': 'text/html', 'content-encoding': 'gzip' })
          .end('this is not gzip'),
    },
  });
  await using app = await startApp();
  const url = `${site.url}/no-gzip`;
  const reply = await app.rest('GET', `/?token=${NORMAL}&format=json&url=${url}`);
  expect(reply.json).toMatchObject({
    original_status: 201,
    failure: 'decoding_failed',
    body: '',
  });
});
