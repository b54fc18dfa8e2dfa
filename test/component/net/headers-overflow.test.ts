import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import type { HttpError } from '../../../src/net/http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { listen } from '../../support/listen.ts';

test.each([
  ['a head', 'HTTP/1.1 200 OK\r\n'],
  ['trailers', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n'],
])('thousands of headers in %s make no stack trace for each', async (_what, start) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(start + 'a: b\r\n'.repeat(100_000)));
  });
  await using open = await listen(server);
  await using stack = new AsyncDisposableStack();
  const client = createHttpClient({ allow: parseNetworkAllow(`127.0.0.1:${open.port}`) });
  stack.defer(() => client.close());
  const error: HttpError = await client
    .request({
      url: `http://127.0.0.1:${open.port}/`,
      method: 'POST',
      timeoutMs: 60_000,
      maxBodyBytes: 1_000_000,
    })
    .then(
      () => expect.unreachable(),
      (failure) => failure,
    );
  expect(error.code).toBe('protocol_error');
  const cause = error.cause as Error & { code: string };
  expect(cause.code).toBe('UND_ERR_HEADERS_OVERFLOW');
  expect(cause.stack).not.toContain('    at ');
  expect(new Error('another').stack).toContain('    at ');
});
