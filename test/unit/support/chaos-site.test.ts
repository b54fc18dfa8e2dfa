import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { openChaosSite } from '../../support/chaos/chaos-site.ts';
import { eventually } from '../../support/eventually.ts';

/** A connection that requests a page when it is told to. */
async function openClient(url: string) {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  return {
    request: () => socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: site\r\n\r\n`),
    leave: () => socket.destroy(),
  };
}

test('a crawl that was aborted before the next one began is not counted together with it', async () => {
  await using site = await openChaosSite();
  const seen = site.seen('shop');
  const clients = await Promise.all(
    [1, 2, 3, 4].map((n) => openClient(site.page('shop', n, 60_000, 0))),
  );
  const [first, second, third, fourth] = clients;
  first?.request();
  second?.request();
  await eventually(() => expect(seen.inFlight).toBe(2));
  first?.leave();
  second?.leave();
  third?.request();
  fourth?.request();
  await eventually(() => expect(seen.requests.size).toBe(4));
  expect(seen).toMatchObject({ inFlight: 2, most: 2 });
  for (const each of clients) each.leave();
});

test('crawls that really are under way at once are counted', async () => {
  await using site = await openChaosSite();
  const seen = site.seen('shop');
  const clients = await Promise.all(
    [1, 2, 3].map((n) => openClient(site.page('shop', n, 60_000, 0))),
  );
  for (const each of clients) each.request();
  await eventually(() => expect(seen.most).toBe(3));
  for (const each of clients) each.leave();
  await eventually(() => expect(seen.inFlight).toBe(0));
});
