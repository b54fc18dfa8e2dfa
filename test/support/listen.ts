import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** A server that listens; disposing closes it and its connections. */
export interface OpenServer extends AsyncDisposable {
  readonly port: number;
}

/**
 * Opens a server on 127.0.0.1 or another address, on a free port unless `port` is given. Rejects when
 * the port is taken.
 */
export async function listen(server: Server, port = 0, address = '127.0.0.1'): Promise<OpenServer> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(port, address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/**
 * Ports below those that systems give to connections, and to servers that ask for any; above 10,080,
 * the last port that the service does not crawl.
 */
const [FIRST_PORT, LAST_PORT] = [10_081, 32_767];
const MAX_TRIES = 100;

/**
 * Returns a port of 127.0.0.1 on which nobody listens. No connection, and no server that asks for any
 * port, is given this one later. So a host stays away, and a server can start on its port again.
 */
export async function freePort(): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    try {
      await using server = await listen(createServer(), randomInt(FIRST_PORT, LAST_PORT + 1));
      return server.port;
    } catch (error) {
      if (tries === MAX_TRIES) throw error;
    }
  }
}
