import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';

test('a page that says it is binary and is text has one JSON form, inline, stored and at a webhook', async () => {
  await using site = await startSite({
    routes: {
      '/list': (_request, response) =>
        void response.writeHead(200, { 'content-type': 'application/octet-stream' }).end('a,b\n'),
    },
  });
  await using receiver = await startReceiver();
  await using app = await startApp();
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url });
  const kept = await createCrawler(app, 'kept');
  const url = `${site.url}/list`;
  const inline = await app.rest('GET', `/?token=${NORMAL}&url=${url}&format=json`);
  const stored = await kept.stored(await kept.push(url));
  await hook.push(url, '&format=json');
  const [post] = await receiver.until(1);
  for (const body of [inline.json, stored.json, post?.json]) {
    expect(body).toMatchObject({ body: 'a,b\n' });
    expect(body).not.toHaveProperty('body_encoding');
  }
});
