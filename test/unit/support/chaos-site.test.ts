import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
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

/** Sends requests on new connections once the flag is set, and counts them as sent. */
const CLIENT = `
  const { workerData: { flag, port, count } } = require('node:worker_threads');
  Atomics.wait(flag, 0, 0);
  let sent = 0;
  for (let n = 0; n < count; n += 1) {
    const socket = require('node:net').connect(port, '127.0.0.1', () => {
      socket.write('GET /polite/1?delay=0&fails=0 HTTP/1.1\\r\\nHost: ' + n + '\\r\\n\\r\\n');
      if (++sent === count) Atomics.store(flag, 0, 2);
    });
    socket.on('data', () => socket.end());
  }
`;

test('requests on new connections count from before the site stood still', async () => {
  await using site = await openChaosSite();
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const { port } = new URL(site.page('polite', 1, 0, 0));
  const client = new Worker(CLIENT, {
    eval: true,
    workerData: { flag, port: Number(port), count: 30 },
  });
  await new Promise((resolve) => client.once('online', resolve));
  const before = performance.now();
  Atomics.store(flag, 0, 1);
  Atomics.notify(flag, 0);
  // The event loop of the site stands still until the requests are in its sockets.
  while (Atomics.load(flag, 0) !== 2) Atomics.wait(flag, 0, 1, 1);
  const starts = await eventually(() => {
    const seen = [...site.seen('polite').hosts.values()].flatMap((host) => host.starts);
    expect(seen).toHaveLength(30);
    return seen;
  });
  expect(Math.max(...starts.map(({ fromMs }) => fromMs))).toBeLessThanOrEqual(before);
  await client.terminate();
});
