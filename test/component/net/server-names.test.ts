import { createServer, type TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen, type OpenServer } from '../../support/listen.ts';
import { startProxy } from '../../support/proxy.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

// RFC 6066, 3: a server name is no address, and has no dot at its end.

/** A server with a certificate for `site.test` and `localhost`, and the names that it was asked for. */
async function startNamed(answer: string): Promise<{ server: OpenServer; names: unknown[] }> {
  const names: unknown[] = [];
  const server = createServer(TLS_FIXTURE, (socket: TLSSocket & { servername?: unknown }) => {
    names.push(socket.servername);
    socket.on('error', () => undefined);
    socket.end(answer);
  });
  return { server: await listen(server), names };
}

const REQUEST = { method: 'GET', timeoutMs: 60_000, maxBodyBytes: 0 };

test.each([
  ['localhost', 'localhost'],
  ['127.0.0.1', false],
])('an https proxy at %s is asked for by the server name %j', async (host, name) => {
  const { server, names } = await startNamed('HTTP/1.1 403 No\r\n\r\n');
  await using open = server;
  await using stack = new AsyncDisposableStack();
  const client = createHttpClient({ allow: parseNetworkAllow(''), ca: TLS_FIXTURE.cert });
  stack.defer(() => client.close());
  const request = { ...REQUEST, url: 'http://93.184.215.14/' };
  const crawl = client.request({ ...request, proxy: `https://${host}:${open.port}` });
  await expect(crawl).rejects.toMatchObject({ code: 'proxy_refused' });
  expect(names).toEqual([name]);
});

test.each([
  ['directly', false],
  ['through a proxy', true],
])(
  'a site whose name ends with a dot is asked %s for the name without it',
  async (_name, isVia) => {
    const { server, names } = await startNamed('HTTP/1.1 204 No Content\r\n\r\n');
    await using open = server;
    await using proxy = await startProxy({ target: `127.0.0.1:${open.port}` });
    await using stack = new AsyncDisposableStack();
    const client = createHttpClient({
      allow: parseNetworkAllow('127.0.0.1'),
      ca: TLS_FIXTURE.cert,
      lookup: async () => [{ address: '127.0.0.1', family: 4 }],
    });
    stack.defer(() => client.close());
    const via = isVia ? { proxy: proxy.url } : {};
    const url = `https://site.test.:${open.port}/`;
    expect((await client.request({ ...REQUEST, url, ...via })).status).toBe(204);
    expect(names).toEqual(['site.test']);
  },
);
