import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** A CONNECT proxy on 127.0.0.1. */
export interface Proxy extends AsyncDisposable {
  /** `http://user:password@127.0.0.1:PORT` */
  readonly url: string;
  /** Authorities it was asked to connect to, oldest first. */
  readonly asked: readonly string[];
}

/**
 * Starts a proxy that wants `user` and `password` (407 without), and takes every CONNECT to `target` (`host:port`), whatever
 * authority was asked for: as a proxy with a DNS of its own would.
 */
export async function startProxy(options: {
  readonly target: string;
  readonly refuseWith?: number;
}): Promise<Proxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer((_request, response) => void response.writeHead(405).end());
  server.on('connection', track);
  server.on('connect', (request, client: Socket, head: Buffer) => {
    const expected = `Basic ${Buffer.from('user:password').toString('base64')}`;
    const status = request.headers['proxy-authorization'] === expected ? options.refuseWith : 407;
    if (status !== undefined) {
      client.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    asked.push(request.url ?? '');
    const [host = '', port] = options.target.split(':');
    const upstream = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    track(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://user:password@127.0.0.1:${port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
