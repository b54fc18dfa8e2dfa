import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { createRouterTransport } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { createMcpEndpoint } from '../../../src/app/mcp-endpoint.ts';
import type { TokenOwner } from '../../../src/domain/account.ts';
import { createUnlimitedPools } from '../../../src/http/room.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';
import { silentLogger } from '../../support/loggers.ts';

const LIST = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
const HEADERS = {
  authorization: 'Bearer token',
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};
/** Requests of an account at once. */
const PLACES = 20;

test('clients that disconnect while their token is looked up keep no place', async () => {
  let lookUp = async (): Promise<void> => undefined;
  const owner = { account: { accountId: 'a', name: 'a' }, tokenType: 'normal' };
  const endpoint = createMcpEndpoint({
    mcp: 'read',
    authenticator: {
      async authenticate() {
        await lookUp();
        return owner as TokenOwner;
      },
    },
    rpc: { transport: () => createRouterTransport(() => undefined) },
    pools: createUnlimitedPools(),
    logger: silentLogger,
  });
  let answered = 0;
  const server = createServer((request, response) => {
    lookUp = async () => {
      if (request.headers['x-leaves'] !== undefined) await once(response, 'close');
    };
    endpoint?.(request, response)
      .then(({ status }) => response.writeHead(status).end())
      .catch(() => response.destroy())
      .finally(() => {
        answered += 1;
      });
  });
  await using open = await listen(server);
  for (let at = 0; at < PLACES; at += 1) {
    const socket = connect(open.port, '127.0.0.1');
    const lines = Object.entries({ ...HEADERS, 'x-leaves': '1' }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    socket.write(
      `POST /mcp HTTP/1.1\r\nhost: a\r\n${lines.join('\r\n')}\r\ncontent-length: 9\r\n\r\n`,
    );
    await once(server, 'request');
    socket.destroy();
    await eventually(() => expect(answered).toBe(at + 1));
  }
  const init = { method: 'POST', headers: HEADERS, body: LIST };
  const { status } = await fetch(`http://127.0.0.1:${open.port}/mcp`, init);
  expect(status).toBe(200);
});
