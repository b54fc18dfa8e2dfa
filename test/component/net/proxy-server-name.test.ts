import { createServer, type TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen } from '../../support/listen.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

test.each([
  ['localhost', 'localhost'],
  // RFC 6066, 3: a server name is no address.
  ['127.0.0.1', false],
])('an https proxy at %s is asked for by the server name %j', async (host, name) => {
  const names: unknown[] = [];
  const proxy = createServer(TLS_FIXTURE, (socket: TLSSocket & { servername?: unknown }) => {
    names.push(socket.servername);
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 403 No\r\n\r\n');
  });
  await using open = await listen(proxy);
  await using stack = new AsyncDisposableStack();
  const client = createHttpClient({ allow: parseNetworkAllow(''), ca: TLS_FIXTURE.cert });
  stack.defer(() => client.close());
  const request = {
    url: 'http://93.184.215.14/',
    method: 'GET',
    timeoutMs: 5_000,
    maxBodyBytes: 0,
  };
  const crawl = client.request({ ...request, proxy: `https://${host}:${open.port}` });
  await expect(crawl).rejects.toMatchObject({ code: 'proxy_refused' });
  expect(names).toEqual([name]);
});
