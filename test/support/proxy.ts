import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { listen } from './listen.ts';

/** A CONNECT proxy on 127.0.0.1. */
export interface Proxy extends AsyncDisposable {
  /** `http://user:password@127.0.0.1:PORT` */
  readonly url: string;
  /** Authorities it was asked to connect to, oldest first. */
  readonly asked: readonly string[];
}

/**
 * Starts a proxy that wants `user` and `password` (407 without), and takes every CONNECT to
 * `target` (`host:port`), whatever authority was asked for. A proxy with a DNS of its own would do
 * the same.
 */
export async function startProxy(options: {
  readonly target: string;
  readonly refuseWith?: number;
}): Promise<Proxy> {
  const asked: string[] = [];
  const endOnError = (socket: Socket) => socket.on('error', () => socket.destroy());
  const server = createServer((_request, response) => void response.writeHead(405).end());
  server.on('connection', endOnError);
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
    endOnError(upstream);
    client.once('close', () => upstream.destroy());
  });
  const open = await listen(server);
  return {
    url: `http://user:password@127.0.0.1:${open.port}`,
    asked,
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}
