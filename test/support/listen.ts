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

/** Returns a port of 127.0.0.1 on which nobody listens. */
export async function freePort(): Promise<number> {
  await using server = await listen(createServer());
  return server.port;
}
